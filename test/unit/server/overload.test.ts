import { describe, expect, test } from 'vitest';
import { AbortedError } from '../../../src/core/aborted-error.ts';
import { createApp } from '../../../src/server/app.ts';
import { DEFAULT_SERVER_CONFIG, type ServerConfig } from '../../../src/server/server-config.ts';
import { Gate } from '../../support/gate.ts';
import { until } from '../../support/labelled-timeout.ts';
import { parsePrometheus, sumOf } from '../../support/prometheus-text.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';

function setUp(config: Partial<ServerConfig>, engine: ServerFixtureOptions['engine'] = {}) {
  const fixture = createServerFixture({ engine, config });
  const app = createApp(fixture.options);
  const complete = (body: object, headers = {}) => post(app, '/v1/completions', { max_tokens: 2, ...body }, { headers });
  return { ...fixture, app, complete };
}

const key = (name: string) => ({ authorization: `Bearer ${name}` });

describe('requests of one caller at a time', () => {
  test('beyond the limit are 429, while other keys are served', async () => {
    const gate = new Gate();
    const { complete, engine } = setUp({ maxRequestsPerKey: 2, apiKeys: ['a', 'b'] }, { beforeStep: () => gate.opened });
    const running = [complete({ prompt: 'x' }, key('a')), complete({ prompt: 'x' }, key('a'))];
    await until('two run', () => engine.load().running === 2);
    const refused = await complete({ prompt: 'x' }, key('a'));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await errorOf(refused)).toMatchObject({ type: 'rate_limit_error', code: 'rate_limited' });
    const other = complete({ prompt: 'x' }, key('b'));
    await until('the other key runs', () => engine.load().running === 3);
    gate.open();
    for (const response of await Promise.all([...running, other])) expect(response.status).toBe(200);
    expect((await complete({ prompt: 'x' }, key('a'))).status).toBe(200);
  });

  test.each([
    ['an answer', { prompt: 'x' }, 200],
    ['a refusal', { prompt: '' }, 400],
    ['a stream', { prompt: 'x', stream: true }, 200],
  ])('end with %s', async (_, body, status) => {
    const { complete } = setUp({ maxRequestsPerKey: 1 });
    for (let i = 0; i < 3; i++) {
      const response = await complete(body);
      expect(response.status).toBe(status);
      await response.text();
    }
  });

  test.each(['/tokenize', '/detokenize', '/v1/completions/render', '/v1/chat/completions/render'])(
    'are those for %s, too',
    async (path) => {
      const gate = new Gate();
      const { app, complete, engine } = setUp({ maxRequestsPerKey: 1 }, { beforeStep: () => gate.opened });
      const running = complete({ prompt: 'x' });
      await until('one runs', () => engine.load().running === 1);
      expect((await post(app, path, {})).status).toBe(429);
      gate.open();
      await running;
      expect((await post(app, path, {})).status).toBe(400);
      expect((await complete({ prompt: 'x' })).status).toBe(200);
    },
  );

  test('last as long as their stream, and end when the reader leaves', async () => {
    const gate = new Gate();
    const { complete } = setUp({ maxRequestsPerKey: 1 }, { beforeStep: (_, step) => (step === 1 ? gate.opened : undefined) });
    const stream = await complete({ prompt: 'x', stream: true, max_tokens: 9 });
    const reader = stream.body!.getReader();
    await reader.read();
    expect((await complete({ prompt: 'x' })).status).toBe(429);
    const cancelled = reader.cancel();
    gate.open();
    await cancelled;
    expect((await complete({ prompt: 'x' })).status).toBe(200);
  });
});

describe('a request that asks for too much', () => {
  const limits = { ...DEFAULT_SERVER_CONFIG.limits, maxRequestTokens: 100 };

  test.each<readonly [string, object, string]>([
    ['by max_tokens', { prompt: 'x', max_tokens: 101 }, 'max_tokens'],
    ['by n times max_tokens', { prompt: 'x', max_tokens: 26, n: 4 }, 'max_tokens'],
    ['by prompts times max_tokens', { prompt: ['x', 'y'], max_tokens: 51 }, 'max_tokens'],
  ])('%s is refused before anything is encoded', async (_, body, param) => {
    const { complete, engine } = setUp({ limits });
    const response = await complete(body);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param, code: 'invalid_value' });
    expect(engine.encoded).toEqual([]);
  });

  test.each<readonly [string, object, object, number | null]>([
    ['whole contexts where they fit', {}, { maxRequestTokens: 512 }, null],
    ['a share of the tokens', { n: 3 }, { maxRequestTokens: 512 }, 170],
    ['a share of the logprobs', { n: 2, logprobs: true, top_logprobs: 4 }, { maxRequestLogprobs: 1000 }, 100],
    ['what logprobs of the prompt leave', { logprobs: true, prompt_logprobs: 0 }, { maxRequestLogprobs: 200 }, 180],
  ])('gets %s where it names no max_tokens', async (_, body, caps, maxTokens) => {
    const { app, engine } = setUp({ limits: { ...DEFAULT_SERVER_CONFIG.limits, ...caps } });
    const response = await post(app, '/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], ...body });
    expect(response.status).toBe(200);
    expect(new Set(engine.requests.map((request) => request.maxTokens))).toEqual(new Set([maxTokens]));
  });

  test.each<readonly [string, object, string]>([
    ['of tokens', { max_tokens: 51, logprobs: 1 }, 'logprobs'],
    ['of the prompt', { max_tokens: 1, prompt_logprobs: 20 }, 'prompt_logprobs'],
  ])('by logprobs %s is refused', async (_, body, param) => {
    const { complete, engine } = setUp({ limits: { ...DEFAULT_SERVER_CONFIG.limits, maxRequestLogprobs: 100 } });
    const response = await complete({ prompt: 'xxxxx', ...body });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param, code: 'invalid_value' });
    expect(engine.requests).toEqual([]);
  });

  test.each<readonly [string, string, object, string]>([
    ['/v1/completions', 'one prompt', { prompt: 'x'.repeat(16 * 512 + 1) }, 'prompt'],
    ['/v1/completions', 'all prompts', { prompt: new Array(9).fill('x'.repeat(8 * 512)) }, 'prompt'],
    [
      '/v1/chat/completions',
      'all messages',
      { messages: new Array(9).fill({ role: 'user', content: 'x'.repeat(2 * 512) }) },
      'messages',
    ],
  ])('on %s by the text of %s is refused before it is encoded', async (path, _, body, param) => {
    const { app, engine } = setUp({});
    const response = await post(app, path, body);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param, code: 'context_length_exceeded' });
    expect(engine.encoded).toEqual([]);
  });
});

describe('a request that takes too long', () => {
  const TIMEOUT_MS = 150;
  const held = () => {
    const gate = new Gate();
    const engine = { beforeStep: (_: unknown, step: number) => (step === 1 ? gate.opened : undefined) };
    return { gate, ...setUp({ requestTimeoutMs: TIMEOUT_MS }, engine) };
  };

  test('is 408, and its answer is given up', async () => {
    const { complete, engine, gate } = held();
    const response = complete({ prompt: 'x', max_tokens: 9 });
    setTimeout(() => gate.open(), TIMEOUT_MS + 50);
    expect((await response).status).toBe(408);
    expect(await errorOf(await response)).toMatchObject({ type: 'timeout_error', code: 'timeout' });
    expect(engine.finishes.map(({ reason }) => reason)).toEqual(['aborted']);
  });

  test('says so in its stream', async () => {
    const { complete, gate } = held();
    const response = await complete({ prompt: 'x', max_tokens: 9, stream: true });
    setTimeout(() => gate.open(), TIMEOUT_MS + 50);
    expect(response.status).toBe(200);
    expect(ssePayloads(await response.text()).at(-1)).toMatchObject({ error: { code: 'timeout' } });
  });

  test('has its time from its arrival on, not from its first step', async () => {
    const checkRules = (_: unknown, signal?: AbortSignal) =>
      new Promise<void>((_, reject) => {
        signal?.addEventListener('abort', () => reject(new AbortedError('Compiling a structure')));
      });
    const { complete, engine } = setUp({ requestTimeoutMs: TIMEOUT_MS }, { checkRules });
    const response = await complete({ prompt: 'x', structured_outputs: { json_object: true } });
    expect(response.status).toBe(408);
    expect(engine.requests).toEqual([]);
  });

  test('is 408 when its body does not come to an end', async () => {
    const { app } = setUp({ requestTimeoutMs: TIMEOUT_MS });
    const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{"prompt":')) });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body, duplex: 'half' };
    expect((await app.request('/v1/completions', init as RequestInit)).status).toBe(408);
  });

  test('does not tell the rest to a reader who was too slow', async () => {
    const { complete, engine } = setUp({ requestTimeoutMs: TIMEOUT_MS });
    // As an engine that has run ahead of the reader, and has the whole answer.
    const generate = engine.generate.bind(engine);
    engine.generate = (request) => generate(request, new AbortController().signal);
    const stream = (await complete({ prompt: 'x', max_tokens: 9, stream: true })).body!.getReader();
    await stream.read();
    await new Promise((resolve) => setTimeout(resolve, 2 * TIMEOUT_MS));
    const { value } = await stream.read();
    expect(ssePayloads(new TextDecoder().decode(value))).toMatchObject([{ error: { code: 'timeout' } }]);
  });

  test('is another one than one whose time suffices', async () => {
    const { complete } = setUp({ requestTimeoutMs: 10_000 });
    expect((await complete({ prompt: 'x' })).status).toBe(200);
  });
});

test('a full queue is counted by the limit that was reached', async () => {
  const gate = new Gate();
  const { complete, engine, app } = setUp({}, { info: { maxSequences: 1 }, maxWaiting: 0, beforeStep: () => gate.opened });
  const running = complete({ prompt: 'x' });
  await until('one runs', () => engine.load().running === 1);
  const refused = await complete({ prompt: 'x' });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  gate.open();
  await running;
  const samples = parsePrometheus(await (await app.request('/metrics')).text());
  expect(sumOf(samples, 'blockdraft:admission_rejections_total', { reason: 'max_num_queued_reqs' })).toBe(1);
});
