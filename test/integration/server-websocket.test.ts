import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { AbortedError } from '../../src/core/aborted-error.ts';
import type { PhasedRound } from '../../src/core/round-trace.ts';
import type { EngineStatus } from '../../src/engine/engine.ts';
import { createApp } from '../../src/server/app.ts';
import { DEFAULT_SERVER_CONFIG, type WebSocketLimits } from '../../src/server/server-config.ts';
import { Gate } from '../support/gate.ts';
import { until, within } from '../support/labelled-timeout.ts';
import { ssePayloads } from '../support/read-sse.ts';
import { useServers } from '../support/running-server.ts';
import { createServerFixture } from '../support/server-fixture.ts';
import { post } from '../support/server-requests.ts';
import { byChoice, streamFacts, withFixedCallIds } from '../support/stream-facts.ts';
import { type Frame, WsClient } from '../support/ws-client.ts';
import { STREAM_VECTORS } from '../unit/server/stream-vectors.ts';

const start = useServers();
const PATH = '/v1/completions';
const limits = (changed: Partial<WebSocketLimits>) => ({ webSocket: { ...DEFAULT_SERVER_CONFIG.webSocket, ...changed } });
const holdAt = (step: number, gate: Gate) => ({
  beforeStep: (_: unknown, at: number) => (at === step ? gate.opened : undefined),
});
const withoutId = ({ request_id: _, ...payload }: Frame) => payload;
const errorCode = (frame: Frame | undefined) => (frame?.['error'] as { code: string } | undefined)?.code;

describe('frames on a WebSocket', () => {
  test.each(STREAM_VECTORS)('equal the data of server-sent events for $name', async (vector) => {
    const engine = { script: () => vector.script, info: vector.info ?? {} };
    const body = { ...vector.body, request_id: 'r1' };
    const sse = await post(createApp(createServerFixture({ engine }).options), vector.path, { ...body, stream: true });
    const server = await start({ engine });
    const client = await WsClient.connect(server.url, vector.path);
    client.send(body);
    const frames = await client.answer('r1');
    expect(frames.at(-1)).toEqual({ type: 'done', request_id: 'r1' });
    const payloads = frames.slice(0, -1).map(withoutId);
    const fromSse = ssePayloads(await sse.text()).map(withFixedErrorText);
    const fromFrames = payloads.map(withFixedErrorText);
    expect(withFixedCallIds(byChoice(fromFrames))).toEqual(withFixedCallIds(byChoice(fromSse)));
    expect(streamFacts(payloads).pieces).toEqual(vector.expected.pieces);
    expect(streamFacts(payloads).errorCode).toBe(vector.expected.errorCode);
    await client.close();
  });

  /** The text of an internal error names the id of the request in the log, which HTTP and WebSocket choose differently. */
  function withFixedErrorText(payload: Frame): Frame {
    return 'error' in payload ? { error: { ...(payload['error'] as object), message: '' } } : payload;
  }

  test('tell the rounds of the answer with the phase of their anchors, as server-sent events do', async () => {
    const trace: PhasedRound[] = (['reasoning', 'content'] as const).map((phase, round) => ({
      position: 3 + round,
      anchor: 97,
      drafted: [{ token: 98, confidence: null, targetProbability: 0.8, outcome: 'accepted' }],
      emitted: [{ token: 98, targetProbability: 0.8 }],
      rejectedRank: null,
      end: 'whole',
      shortBy: null,
      phase,
    }));
    const options = { config: { allowTrace: true }, engine: { script: () => ({ text: 'abc', trace }) } };
    const body = { prompt: 'x', trace: true, request_id: 'r1' };
    const sse = await post(createApp(createServerFixture(options).options), PATH, { ...body, stream: true });
    const client = await WsClient.connect((await start(options)).url, PATH);
    client.send(body);
    const traces = (payloads: readonly Frame[]) => payloads.flatMap((payload) => payload['trace'] ?? []);
    const lines = traces(await client.answer('r1'));
    expect(lines).toMatchObject([
      { round: 0, phase: 'reasoning' },
      { round: 1, phase: 'content' },
    ]);
    expect(lines).toEqual(traces(ssePayloads(await sse.text())));
    await client.close();
  });

  test('carry an id of the server when the client names none', async () => {
    const client = await WsClient.connect((await start()).url, PATH);
    client.send({ prompt: 'x', max_tokens: 1 });
    const id = (await client.frame(0))['request_id'] as string;
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    expect((await client.answer(id))[0]).toMatchObject({ id: `cmpl-${id}` });
  });

  test('of several requests come side by side', async () => {
    const client = await WsClient.connect((await start()).url, PATH);
    for (const id of ['a', 'b', 'c']) client.send({ prompt: 'x', max_tokens: 16, request_id: id, seed: 1 });
    const answers = await Promise.all(['a', 'b', 'c'].map((id) => client.answer(id)));
    const texts = answers.map((frames) => streamFacts(frames.slice(0, -1)).pieces.flat().join(''));
    expect(new Set(texts)).toEqual(new Set(['An answer to 1 t']));
    const firstOfLast = client.frames.findIndex((frame) => frame['request_id'] === 'c');
    expect(firstOfLast).toBeLessThan(client.frames.findIndex((frame) => frame['type'] === 'done'));
  });
});

describe('a request on a WebSocket', () => {
  test('can be cancelled while its structure is compiled', async () => {
    const asked = new Gate();
    const checkRules = (_: unknown, signal?: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new AbortedError('Compiling', signal.reason)));
        asked.open();
      });
    const server = await start({ engine: { checkRules } });
    const client = await WsClient.connect(server.url, PATH);
    client.send({ prompt: 'x', request_id: 'a', structured_outputs: { regex: 'a' } });
    await asked.opened;
    client.send({ type: 'cancel', request_id: 'a' });
    expect(await client.answer('a')).toEqual([{ type: 'done', request_id: 'a', cancelled: true }]);
  });

  test('can be cancelled', async () => {
    const gate = new Gate();
    const { url, engine, log } = await start({ engine: holdAt(2, gate) });
    const client = await WsClient.connect(url, PATH);
    client.send({ prompt: 'x', request_id: 'a' });
    await until('two steps ran', () => engine.steps === 2);
    client.send({ type: 'cancel', request_id: 'a' });
    client.send({ type: 'cancel', request_id: 'other' });
    // The second is answered in order, so the first has been read by then.
    await until('the second cancel is answered', () =>
      client.frames.some((frame) => errorCode(frame) === 'unknown_request_id'),
    );
    gate.open();
    expect((await client.answer('a')).at(-1)).toEqual({ type: 'done', request_id: 'a', cancelled: true });
    expect(engine.load().running).toBe(0);
    expect(engine.finishes.map(({ reason }) => reason)).toEqual(['aborted']);
    expect(engine.steps).toBe(2);
    await until('the request is logged', () => log.length > 0);
    expect(log.at(-1)?.fields).toMatchObject({ transport: 'ws', status: 499, errorCode: 'aborted' });
    client.send({ prompt: 'x', request_id: 'a', max_tokens: 1 });
    await until('the id can be used again', () => client.frames.filter((frame) => frame['type'] === 'done').length === 2);
  });

  test.each<readonly [string, object, string, string | null]>([
    ['an unknown field', { prompt: 'x', foo: 1 }, 'unknown_parameter', 'foo'],
    ['another model', { prompt: 'x', model: 'gpt-4' }, 'model_not_found', 'model'],
    ['stream: false', { prompt: 'x', stream: false }, 'invalid_value', 'stream'],
    ['a prompt that is too long', { prompt: 'x'.repeat(600) }, 'context_length_exceeded', 'prompt'],
  ])('with %s gets an error and its end, and the connection lives', async (_, body, code, param) => {
    const client = await WsClient.connect((await start()).url, PATH);
    client.send({ ...body, request_id: 'a' });
    const frames = await client.answer('a');
    expect(frames).toHaveLength(2);
    expect(frames[0]).toMatchObject({ error: { code, param } });
    client.send({ prompt: 'x', request_id: 'b', max_tokens: 1 });
    expect((await client.answer('b')).length).toBeGreaterThan(2);
  });

  test('may have null for what is absent', async () => {
    const client = await WsClient.connect((await start()).url, PATH);
    client.send({ prompt: 'x', request_id: 'a', max_tokens: 1, type: null, stream: null, n: null });
    expect(streamFacts((await client.answer('a')).filter((frame) => 'choices' in frame)).finishReasons).toEqual(['length']);
  });

  test('may not have the id of one that runs', async () => {
    const gate = new Gate();
    const client = await WsClient.connect((await start({ engine: holdAt(1, gate) })).url, PATH);
    client.send({ prompt: 'x', request_id: 'a', max_tokens: 4 });
    client.send({ prompt: 'x', request_id: 'a' });
    await until('the second is refused', () => client.frames.some((frame) => 'error' in frame));
    expect(client.frames.find((frame) => 'error' in frame)).toMatchObject({
      error: { code: 'duplicate_request_id', param: 'request_id' },
      request_id: 'a',
    });
    gate.open();
    await client.answer('a');
    expect(streamFacts(client.frames.filter((frame) => 'choices' in frame)).finishReasons).toEqual(['length']);
  });

  test('is refused beyond the limit of its connection', async () => {
    const gate = new Gate();
    const { url } = await start({ engine: holdAt(0, gate), config: limits({ maxRequestsPerConnection: 2 }) });
    const client = await WsClient.connect(url, PATH);
    for (const id of ['a', 'b', 'c']) client.send({ prompt: 'x', request_id: id, max_tokens: 1 });
    expect(await client.frame(0)).toMatchObject({ error: { code: 'overloaded' }, request_id: 'c' });
    gate.open();
    await Promise.all([client.answer('a'), client.answer('b')]);
  });
});

test('a request is refused beyond the limit of its caller, over HTTP too', async () => {
  const gate = new Gate();
  const { url } = await start({ engine: holdAt(0, gate), config: { maxRequestsPerKey: 1 } });
  const client = await WsClient.connect(url, PATH);
  for (const id of ['a', 'b']) client.send({ prompt: 'x', request_id: id, max_tokens: 1 });
  expect((await client.answer('b'))[0]).toMatchObject({ error: { code: 'rate_limited' } });
  const body = JSON.stringify({ prompt: 'x' });
  const overHttp = await fetch(url + PATH, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(overHttp.status).toBe(429);
  gate.open();
  await client.answer('a');
  client.send({ prompt: 'x', request_id: 'c', max_tokens: 1 });
  expect((await client.answer('c')).some((frame) => 'error' in frame)).toBe(false);
});

describe('a frame that is no request', () => {
  test.each<readonly [string, string | Buffer, string]>([
    ['no JSON', '{"prompt":', 'invalid_json'],
    ['no object', '[1]', 'invalid_json'],
    ['binary', Buffer.from('{"prompt":"x"}'), 'invalid_json'],
    ['of an unknown type', '{"type":"pause","request_id":"a"}', 'invalid_value'],
    ['a cancel without an id', '{"type":"cancel"}', 'missing_parameter'],
    ['a request with an unsafe id', '{"prompt":"x","request_id":"a b"}', 'invalid_value'],
  ])('because it is %s gets an error frame, and the connection lives', async (_, frame, code) => {
    const client = await WsClient.connect((await start()).url, PATH);
    client.socket.send(frame);
    expect(await client.frame(0)).toMatchObject({ error: { type: 'invalid_request_error', code }, request_id: null });
    client.send({ prompt: 'x', request_id: 'b', max_tokens: 1 });
    await client.answer('b');
  });

  test('too many times in a row ends the connection as a policy violation', async () => {
    const { url } = await start({ config: limits({ maxErrorFrames: 3 }) });
    const client = await WsClient.connect(url, PATH);
    for (let i = 0; i < 3; i++) client.send('nonsense');
    expect((await client.closed()).code).toBe(1008);
    expect(client.frames).toHaveLength(3);
  });

  test('of more bytes than allowed ends the connection as too big', async () => {
    const { url } = await start({ config: { limits: { ...DEFAULT_SERVER_CONFIG.limits, maxBodyBytes: 100 } } });
    const client = await WsClient.connect(url, PATH);
    client.send({ prompt: 'x'.repeat(200) });
    expect((await client.closed()).code).toBe(1009);
  });
});

describe('a connection', () => {
  test('without the right key is told so and closed as a policy violation', async () => {
    const { url } = await start({ config: { apiKeys: ['secret'] } });
    for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
      const client = await WsClient.connect(url, PATH, { headers });
      expect((await client.closed()).code).toBe(1008);
      expect(client.frames).toEqual([{ error: expect.objectContaining({ code: 'invalid_api_key' }), request_id: null }]);
    }
    const client = await WsClient.connect(url, PATH, { headers: { authorization: 'Bearer secret' } });
    client.send({ prompt: 'x', request_id: 'a', max_tokens: 1 });
    await client.answer('a');
  });

  test.each<readonly [EngineStatus['state'], number]>([
    ['loading', 1013],
    ['failed', 1013],
    ['draining', 1001],
  ])('to an engine that is %s is closed with %i', async (state, code) => {
    const { url } = await start({ status: (engine) => ({ state, engine, message: '' }) as EngineStatus });
    const client = await WsClient.connect(url, PATH);
    expect((await client.closed()).code).toBe(code);
    expect(client.frames).toEqual([{ error: expect.objectContaining({ code: 'unavailable' }), request_id: null }]);
  });

  test('beyond the limit is told to come back later', async () => {
    const { url } = await start({ config: limits({ maxConnections: 1 }) });
    const first = await WsClient.connect(url, PATH);
    const second = await WsClient.connect(url, PATH);
    expect((await second.closed()).code).toBe(1013);
    await first.close();
    const third = await WsClient.connect(url, PATH);
    third.send({ prompt: 'x', request_id: 'a', max_tokens: 1 });
    await third.answer('a');
  });

  test('beyond the limit of its key is told to come back later, while other keys are served', async () => {
    const { url } = await start({ config: { ...limits({ maxConnectionsPerKey: 1 }), apiKeys: ['a', 'b'] } });
    const connect = (key: string) => WsClient.connect(url, PATH, { headers: { authorization: `Bearer ${key}` } });
    const first = await connect('a');
    const second = await connect('a');
    expect((await second.closed()).code).toBe(1013);
    const other = await connect('b');
    other.send({ prompt: 'x', request_id: 'a', max_tokens: 1 });
    await other.answer('a');
    await first.close();
    const third = await connect('a');
    third.send({ prompt: 'x', request_id: 'a', max_tokens: 1 });
    await third.answer('a');
  });

  test('with too many frames in a second is closed as a policy violation', async () => {
    const { url } = await start({ config: limits({ maxFramesPerSecond: 4 }) });
    const client = await WsClient.connect(url, PATH);
    for (let i = 0; i < 8; i++) client.send('nonsense');
    expect(await client.closed()).toEqual({ code: 1008, reason: 'too many frames in a second' });
    expect(client.frames).toHaveLength(4);
  });

  test('from a foreign page is refused before it opens', async () => {
    const { url } = await start({ config: { allowedOrigins: ['https://app.example'] } });
    await expect(WsClient.connect(url, PATH, { origin: 'http://evil.example' })).rejects.toThrow(
      /^403 {"error":.*origin_not_allowed/,
    );
    await (await WsClient.connect(url, PATH, { origin: 'https://app.example' })).close();
    await (await WsClient.connect(url, PATH, { origin: url })).close();
  });

  test.each(['/v1/models', '/', '/v1/completions/x', '/health'])('to %s is refused before it opens', async (path) => {
    await expect(WsClient.connect((await start()).url, path)).rejects.toThrow(/^404 {"error":/);
  });

  test('has no compression, and echoes the request id', async () => {
    const socket = new WebSocket((await start()).url.replace('http', 'ws') + PATH, { headers: { 'x-request-id': 'abc' } });
    socket.once('open', () => socket.close());
    const upgraded = new Promise<Record<string, unknown>>((resolve) => {
      socket.once('upgrade', (response) => resolve(response.headers));
    });
    const headers = await within('the handshake is answered', upgraded);
    expect(headers).toMatchObject({ 'x-request-id': 'abc' });
    expect(headers).not.toHaveProperty('sec-websocket-extensions');
  });

  test('that goes away frees its sequences', async () => {
    const gate = new Gate();
    const { url, engine } = await start({ engine: holdAt(2, gate) });
    const client = await WsClient.connect(url, PATH);
    for (const id of ['a', 'b']) client.send({ prompt: 'x', request_id: id });
    await until('both requests ran two steps', () => engine.steps === 4);
    client.socket.terminate();
    // The server has read the end of the connection once the first request may go on and does not.
    await new Promise((resolve) => setTimeout(resolve, 50));
    gate.open();
    await until('the sequences are free', () => engine.load().running === 0);
    expect(engine.finishes.map(({ reason }) => reason)).toEqual(['aborted', 'aborted']);
    expect(engine.steps).toBe(4);
  });

  test('that does not read holds its answer back, and gets all of it when it reads', async () => {
    const text = 'y'.repeat(4_000);
    const { url, engine } = await start({
      engine: { script: () => ({ text, accepts: [0] }), info: { maxContext: 10_000 } },
      config: limits({ highWaterBytes: 2_000 }),
    });
    const client = await WsClient.connect(url, PATH);
    client.socket.pause();
    // Many answers fill the buffers of the kernel, which lie between the two ends.
    for (let i = 0; i < 8; i++) client.send({ prompt: 'x', request_id: `r${i}`, max_tokens: 4_000 });
    let steps = -1;
    await until(
      'the engine is held back',
      () => {
        const stands = steps === engine.steps && steps > 0;
        steps = engine.steps;
        return stands && engine.load().running === 8;
      },
      30_000,
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(engine.steps).toBe(steps);
    expect(steps).toBeLessThan(8 * 4_000);
    client.socket.resume();
    await until('all is read', () => client.frames.filter((frame) => frame['type'] === 'done').length === 8, 60_000);
    expect(
      streamFacts(client.frames.filter((frame) => 'choices' in frame && frame['request_id'] === 'r0')).pieces[0]?.join(''),
    ).toBe(text);
  });

  test('that lets far too much pile up is cut', async () => {
    const { url, engine, log } = await start({
      engine: { script: () => ({ text: 'y'.repeat(40_000), accepts: [0] }), info: { maxContext: 100_000 } },
      config: limits({ highWaterBytes: 1e9, hardLimitBytes: 50_000 }),
    });
    const client = await WsClient.connect(url, PATH);
    client.socket.pause();
    client.send({ prompt: 'x', request_id: 'a', max_tokens: 40_000 });
    await until('the connection is cut', () => log.some(({ message }) => message === 'websocket cut'), 30_000);
    await until('the sequence is free', () => engine.load().running === 0);
    client.socket.terminate();
  });

  test('that does not answer a ping is cut', async () => {
    const gate = new Gate();
    const { url, engine } = await start({ engine: holdAt(1, gate), config: limits({ pingIntervalMs: 30 }) });
    const client = await WsClient.connect(url, PATH, { autoPong: false });
    client.send({ prompt: 'x', request_id: 'a' });
    expect((await client.closed()).code).toBe(1006);
    gate.open();
    await until('the sequence is free', () => engine.load().running === 0);
  });

  test('with nothing to do for long is closed, one with a request is not', async () => {
    const gate = new Gate();
    const { url, engine } = await start({
      engine: holdAt(0, gate),
      config: limits({ pingIntervalMs: 20, idleTimeoutMs: 1_000 }),
    });
    const idle = await WsClient.connect(url, PATH);
    const busy = await WsClient.connect(url, PATH);
    busy.send({ prompt: 'x', request_id: 'a', max_tokens: 1 });
    await until('the request runs', () => engine.load().running === 1);
    engine.clock.advance(2_000);
    expect(await idle.closed()).toEqual({ code: 1000, reason: 'idle' });
    expect(busy.socket.readyState).toBe(WebSocket.OPEN);
    gate.open();
    await busy.answer('a');
  });
});

describe('a server that closes', () => {
  test('lets running answers finish, takes no new ones and says that it goes', async () => {
    const gate = new Gate();
    const { url, close, engine } = await start({ engine: holdAt(1, gate), config: { closeGraceMs: 10_000 } });
    const idle = await WsClient.connect(url, PATH);
    const busy = await WsClient.connect(url, PATH);
    busy.send({ prompt: 'x', request_id: 'a', max_tokens: 5 });
    await until('the request runs', () => engine.steps === 1);
    const closing = close();
    expect((await idle.closed()).code).toBe(1001);
    busy.send({ prompt: 'x', request_id: 'b' });
    expect(await busy.answer('b')).toMatchObject([{ error: { code: 'unavailable' } }, { type: 'done' }]);
    gate.open();
    await busy.answer('a');
    expect((await busy.closed()).code).toBe(1001);
    await closing;
    await expect(WsClient.connect(url, PATH)).rejects.toThrow('ECONNREFUSED');
  });

  test('does not wait for a client that has got all and does not answer', async () => {
    const { url, close } = await start();
    const client = await WsClient.connect(url, PATH);
    client.socket.pause();
    await within('the server closes', close(60_000), 20_000);
    client.socket.terminate();
  });

  test('cuts what does not end in time', async () => {
    const gate = new Gate();
    const { url, close, engine } = await start({ engine: holdAt(1, gate), config: { closeGraceMs: 50 } });
    const client = await WsClient.connect(url, PATH);
    client.send({ prompt: 'x', request_id: 'a' });
    await until('the request runs', () => engine.steps === 1);
    await close();
    expect((await client.closed()).code).toBe(1006);
    gate.open();
    await until('the sequence is free', () => engine.load().running === 0);
  });
});
