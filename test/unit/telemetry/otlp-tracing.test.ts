/** From a request over a socket to what an OpenTelemetry collector receives. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startServer } from '../../../src/server/start-server.ts';
import { openOtlpTracing } from '../../../src/telemetry/otlp-tracing.ts';
import { Gate } from '../../support/gate.ts';
import { until, within } from '../../support/labelled-timeout.ts';
import { OtlpReceiver } from '../../support/otlp-receiver.ts';
import { type LogLine, recordingLogger } from '../../support/recording-logger.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { WsClient } from '../../support/ws-client.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const COMPLETIONS = '/v1/completions';

async function setUp(options: ServerFixtureOptions = {}, endpoint?: string) {
  const receiver = await OtlpReceiver.open();
  onTestFinished(() => receiver[Symbol.asyncDispose]());
  const told: LogLine[] = [];
  const tracing = openOtlpTracing({ endpoint: endpoint ?? receiver.url, version: '9.9.9', logger: recordingLogger(told) });
  const fixture = createServerFixture({ ...options, engine: { observer: tracing, ...options.engine } });
  const server = await startServer({ ...fixture.options, tracer: tracing, host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const ask = (body: object, headers: Readonly<Record<string, string>> = {}, signal: AbortSignal | null = null) =>
    fetch(server.url + COMPLETIONS, {
      signal,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return { ...fixture, told, receiver, tracing, server, ask };
}

const SCRIPT = () => ({ text: 'abcdefghijkl', accepts: [2, 4], proposes: [4, 0], cachedTokens: 1 });

describe('a request', () => {
  test('is a span with children for queue, prompt and answer, which follow one another', async () => {
    const { ask, receiver, tracing } = await setUp({ engine: { script: SCRIPT } });
    await (await ask({ prompt: 'xyz', max_tokens: 9, temperature: 0, seed: 7 }, { 'x-request-id': 'r1' })).text();
    await tracing.shutdown();
    const span = receiver.only('text_completion fake-model');
    const [queue, prefill, decode] = ['queue', 'prefill', 'decode'].map((name) => receiver.only(name));
    for (const child of [queue, prefill, decode]) {
      expect([child!.traceId, child!.parentSpanId]).toEqual([span.traceId, span.spanId]);
    }
    expect(queue!.end).toBeCloseTo(prefill!.start, 1);
    expect(prefill!.end).toBeCloseTo(decode!.start, 1);
    // Of the engine's clock: a step of 10 ms for the prompt, then four rounds, two of them with a draft.
    expect(prefill!.end - prefill!.start).toBeCloseTo(10, 1);
    expect(decode!.end - decode!.start).toBeCloseTo(4 * 10 + 2 * 2, 1);
    expect(span.kind).toBe(2);
    expect(span.attributes).toEqual({
      'url.path': COMPLETIONS,
      'network.protocol.name': 'http',
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'blockdraft.request.id': 'r1',
      'gen_ai.operation.name': 'text_completion',
      'gen_ai.provider.name': 'blockdraft',
      'gen_ai.request.model': 'fake-model',
      'gen_ai.response.model': 'fake-model',
      'gen_ai.response.id': 'cmpl-r1',
      'gen_ai.request.choice.count': 1,
      'gen_ai.request.seed': 7,
      'gen_ai.request.max_tokens': 9,
      'gen_ai.request.temperature': 0,
      'gen_ai.request.top_p': 1,
      'gen_ai.usage.input_tokens': 3,
      'gen_ai.usage.output_tokens': 9,
      'gen_ai.usage.cache_read.input_tokens': 1,
      'gen_ai.response.finish_reasons': ['length'],
      'blockdraft.drafter': 'oracle',
      'blockdraft.rounds': 4,
      'blockdraft.drafts': 2,
      'blockdraft.draft_tokens': 4 + 3,
      'blockdraft.accepted_tokens': 4,
      'blockdraft.acceptance_length': 3,
      'blockdraft.acceptance_rate': 4 / 7,
      'blockdraft.rounds_without_draft.no-proposal': 1,
      'blockdraft.rounds_without_draft.near-max-tokens': 1,
      'blockdraft.rounds_shortened.near-max-tokens': 1,
    });
    expect(decode!.attributes).toMatchObject({ 'blockdraft.draft_tokens': 7, 'gen_ai.usage.output_tokens': 9 });
    expect(span.resource).toMatchObject({ 'service.name': 'blockdraft', 'service.version': '9.9.9' });
  });

  test('goes on the trace of its caller, and the log names that trace', async () => {
    const { ask, receiver, tracing, log } = await setUp();
    await (await ask({ prompt: 'x' }, { traceparent: `00-${TRACE}-${PARENT}-01` })).text();
    await tracing.shutdown();
    expect(receiver.only('text_completion fake-model')).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    expect(log.find((line) => line.message === 'request')?.fields).toMatchObject({ traceId: TRACE });
  });

  test('whose caller does not sample is not sent', async () => {
    const { ask, receiver, tracing } = await setUp();
    await (await ask({ prompt: 'x' }, { traceparent: `00-${TRACE}-${PARENT}-00` })).text();
    await tracing.shutdown();
    expect(receiver.requests).toEqual([]);
  });

  test('with several choices has three children for each', async () => {
    const { ask, receiver, tracing } = await setUp();
    await (await ask({ prompt: 'x', n: 2, max_tokens: 3 })).text();
    await tracing.shutdown();
    const decoded = receiver.spans.filter((span) => span.name === 'decode');
    expect(decoded.map((span) => span.attributes['blockdraft.choice']).toSorted()).toEqual([0, 1]);
    expect(receiver.only('text_completion fake-model').attributes).toMatchObject({
      'gen_ai.request.choice.count': 2,
      'gen_ai.usage.output_tokens': 6,
    });
  });

  test('over a WebSocket is on the trace of the handshake', async () => {
    const { server, receiver, tracing, log } = await setUp();
    const headers = { traceparent: `00-${TRACE}-${PARENT}-01` };
    const client = await WsClient.connect(server.url, '/v1/chat/completions', { headers });
    client.send({ messages: [{ role: 'user', content: 'a secret' }], request_id: 'a', max_tokens: 3 });
    await client.answer('a');
    await until('the request has ended', () => log.some((line) => line.message === 'request'));
    await tracing.shutdown();
    const span = receiver.only('chat fake-model');
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    expect(span.attributes).toMatchObject({ 'network.protocol.name': 'websocket', 'gen_ai.response.id': 'chatcmpl-a' });
    expect(span.attributes).not.toHaveProperty('http.response.status_code');
    expect(JSON.stringify(receiver.spans)).not.toContain('secret');
  });
});

describe('a request that fails', () => {
  test('says why; a fault of the caller is no error of the server', async () => {
    const { ask, receiver, tracing } = await setUp();
    await (await ask({ prompt: 'x', foo: 1 })).text();
    await tracing.shutdown();
    const span = receiver.only('text_completion');
    expect(span.attributes).toMatchObject({ 'http.response.status_code': 400, 'error.type': 'unknown_parameter' });
    expect(span.status.code ?? 0).toBe(0);
  });

  test('inside the engine has the status of an error', async () => {
    const script = () => ({ text: 'abcdef', failsAt: { step: 1, error: new Error('boom') } });
    const { ask, receiver, tracing } = await setUp({ engine: { script } });
    await (await ask({ prompt: 'x' })).text();
    await tracing.shutdown();
    const span = receiver.only('text_completion fake-model');
    expect(span.attributes).toMatchObject({ 'http.response.status_code': 500, 'error.type': 'internal_error' });
    expect(span.status.code).toBe(2);
    expect(receiver.only('decode').attributes).toMatchObject({ 'gen_ai.response.finish_reasons': ['error'] });
  });

  test('because its reader left still says how far it came', async () => {
    const gate = new Gate();
    const { ask, receiver, tracing, engine, log } = await setUp({
      engine: { beforeStep: (_, step) => (step === 2 ? gate.opened : undefined) },
    });
    const leave = new AbortController();
    await ask({ prompt: 'x', stream: true }, {}, leave.signal);
    await until('two steps ran', () => engine.steps === 2);
    leave.abort();
    await until('the request has ended', () => log.some((line) => line.message === 'request'));
    gate.open();
    await until('the engine has ended it', () => engine.finishes.length === 1);
    await tracing.shutdown();
    expect(receiver.only('text_completion fake-model').attributes).toMatchObject({
      'error.type': 'aborted',
      'gen_ai.response.finish_reasons': ['aborted'],
      'blockdraft.rounds': 1,
    });
  });
});

describe('a collector', () => {
  test('that refuses is told of once, and costs answers nothing', async () => {
    vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '10');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { ask, receiver, tracing, told } = await setUp();
    receiver.refuseWith = 400;
    for (let i = 0; i < 2; i++) {
      const before = receiver.requests.length;
      expect((await ask({ prompt: 'x' })).status).toBe(200);
      await until('spans are sent', () => receiver.requests.length > before);
    }
    receiver.refuseWith = null;
    expect((await ask({ prompt: 'x' })).status).toBe(200);
    await tracing.shutdown();
    expect(told.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'traces cannot be sent'],
      ['info', 'traces can be sent again'],
    ]);
    expect(told[1]?.fields['lostSpans']).toBeGreaterThan(1);
  });

  test('that is not there holds up neither answers nor the end', async () => {
    const { ask, tracing } = await setUp({}, 'http://127.0.0.1:9');
    expect((await ask({ prompt: 'x' })).status).toBe(200);
    await within('the end', tracing.shutdown(), 8_000);
  });
});
