import { describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { within } from '../../support/labelled-timeout.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { post } from '../../support/server-requests.ts';
import { streamFacts } from '../../support/stream-facts.ts';
import { STREAM_VECTORS, type StreamVector } from './stream-vectors.ts';

async function stream(vector: Pick<StreamVector, 'path' | 'body' | 'script' | 'info'>) {
  const fixture = createServerFixture({ engine: { script: () => vector.script, info: vector.info ?? {} } });
  const body = { ...vector.body, stream: true, request_id: 'r1' };
  const response = await post(createApp(fixture.options), vector.path, body);
  const text = await within('the stream ends', response.text());
  return { response, payloads: ssePayloads(text), fixture };
}

describe('a stream of server-sent events', () => {
  test.each(STREAM_VECTORS)('carries $name', async (vector) => {
    const { expected } = vector;
    const { payloads } = await stream(vector);
    const facts = streamFacts(payloads);
    expect(facts.pieces).toEqual(expected.pieces);
    expect(facts.reasoning).toEqual(expected.reasoning ?? []);
    expect(facts.calls).toEqual(expected.calls ?? []);
    expect(facts.finishReasons).toEqual(expected.finishReasons);
    expect(facts.stopReason).toBe(expected.stopReason ?? null);
    expect(facts.errorCode).toBe(expected.errorCode);
    expect(facts.metricsIn).toBe(expected.metricsIn);
    expect(payloads.filter((payload) => 'metrics' in payload)).toHaveLength(expected.metricsIn === undefined ? 0 : 1);
    const speculation = facts.metrics?.['speculative_decoding'];
    if (expected.speculation === null) expect(speculation).toBeNull();
    else if (expected.speculation !== undefined) expect(speculation).toMatchObject(expected.speculation);
  });

  const chat = STREAM_VECTORS[0]!;

  test('has the headers that keep proxies and caches out of the way', async () => {
    const { response } = await stream(chat);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
  });

  test('opens a chat with the role and empty content, and names every chunk alike', async () => {
    const { payloads, fixture } = await stream(chat);
    expect(payloads[0]).toEqual({
      id: 'chatcmpl-r1',
      object: 'chat.completion.chunk',
      created: Math.floor(Date.UTC(2030, 0, 1) / 1000),
      model: fixture.engine.info.model,
      system_fingerprint: expect.stringMatching(/^fp_[0-9a-f]{12}$/),
      choices: [{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
      usage: null,
    });
    for (const payload of payloads) {
      expect(payload).toMatchObject({ id: 'chatcmpl-r1', object: 'chat.completion.chunk', created: payloads[0]!['created'] });
    }
  });

  test('has usage null in each chunk but the last, which has no choice', async () => {
    const { payloads } = await stream(chat);
    expect(payloads.slice(0, -1).every((payload) => payload['usage'] === null)).toBe(true);
    expect(payloads.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 21, completion_tokens: 12, total_tokens: 33, prompt_tokens_details: { cached_tokens: 0 } },
    });
  });

  test('has no usage at all unless it is asked for', async () => {
    const { payloads } = await stream(STREAM_VECTORS[1]!);
    expect(payloads.some((payload) => 'usage' in payload)).toBe(false);
  });

  test('counts in each chunk what was emitted so far, when asked to', async () => {
    const vector = STREAM_VECTORS.find(({ name }) => name === 'counts in every chunk')!;
    const { payloads } = await stream(vector);
    const counts = payloads.map((payload) => (payload['usage'] as { completion_tokens: number }).completion_tokens);
    expect(counts).toEqual([1, 3, 4, 4, 4]);
  });

  test('has no chunk for a round whose text is all held back', async () => {
    const vector = STREAM_VECTORS.find(({ name }) => name.startsWith('characters of several bytes'))!;
    const { payloads } = await stream(vector);
    // The role, three characters out of seven bytes, the end, the usage.
    expect(payloads).toHaveLength(1 + 3 + 1 + 1);
  });

  test('tells nothing of an internal failure but where to look, and logs the rest', async () => {
    const { payloads, fixture } = await stream(STREAM_VECTORS.at(-1)!);
    expect(JSON.stringify(payloads)).not.toContain('/some/path');
    const failure = fixture.log.find((line) => line.level === 'error');
    expect(failure?.fields).toMatchObject({ code: 'onnx_runtime' });
    expect(fixture.log.at(-1)).toMatchObject({ message: 'request', fields: { status: 200, errorCode: 'internal_error' } });
  });

  test.each([
    ['context_length_exceeded', 400, { prompt: 'x'.repeat(600) }],
    ['model_not_found', 404, { prompt: 'x', model: 'gpt-4' }],
  ])('is refused with a status and no stream for %s', async (code, status, body) => {
    const fixture = createServerFixture();
    const response = await post(createApp(fixture.options), '/v1/completions', { ...body, stream: true });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
  });
});
