import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { startServer } from '../../src/server/start-server.ts';
import { Gate } from '../support/gate.ts';
import { until, within } from '../support/labelled-timeout.ts';
import { ssePayloads } from '../support/read-sse.ts';
import { useServers } from '../support/running-server.ts';
import { streamFacts } from '../support/stream-facts.ts';

const start = useServers();
const holdAt = (step: number, gate: Gate) => ({
  beforeStep: (_: unknown, at: number) => (at === step ? gate.opened : undefined),
});

function send(url: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Sends bytes as they are and returns what came back until the server closed. */
async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.on('data', (data) => {
    received += data.toString();
  });
  socket.write(bytes);
  await within('the server closes the connection', new Promise((resolve) => socket.once('close', resolve)));
  return received;
}

describe('over a socket', () => {
  test('a whole answer comes', async () => {
    const { url } = await start();
    const response = await send(url, { prompt: 'x', max_tokens: 4 });
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toMatchObject({ choices: [{ text: 'An a' }] });
  });

  test('the tokens of a round come when the round ends, in one event', async () => {
    const gate = new Gate();
    const { url } = await start({ engine: { ...holdAt(2, gate), script: () => ({ text: 'abcdefgh', accepts: [2] }) } });
    const response = await send(url, { prompt: 'x', stream: true });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const read = async (label: string) => {
      const { value } = await within(label, reader.read());
      text += value ?? '';
    };
    while (!text.includes('"bcd"')) await read('the first round comes while the second is held');
    expect(text).not.toContain('[DONE]');
    gate.open();
    while (!text.includes('[DONE]')) await read('the rest comes');
    expect(streamFacts(ssePayloads(text)).pieces).toEqual([['a', 'bcd', 'efg', 'h']]);
  });

  test('the headers of a stream do not wait for a long prompt', async () => {
    const gate = new Gate();
    const { url } = await start({ engine: holdAt(0, gate) });
    const response = await within('the headers come', send(url, { prompt: 'x', stream: true, max_tokens: 1 }));
    expect(response.status).toBe(200);
    gate.open();
    expect(await within('the stream ends', response.text())).toContain('[DONE]');
  });

  test('a body beyond the limit is refused with a body of its own', async () => {
    const response = await send((await start()).url, { prompt: 'x'.repeat(5_000_000) });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: 'request_too_large' } });
  });

  test.each<readonly [string, string, RegExp]>([
    ['no HTTP', 'nonsense\r\n\r\n', /^HTTP\/1\.1 400 /],
    ['headers without end', `GET / HTTP/1.1\r\nhost: x\r\nlong: ${'x'.repeat(20_000)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
    ['no host', 'GET /health HTTP/1.1\r\nconnection: close\r\n\r\n', /^HTTP\/1\.1 400 /],
    [
      'an upgrade to something else',
      'GET /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n',
      /^HTTP\/1\.1 400 /,
    ],
    [
      'a broken WebSocket handshake',
      'GET /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 8\r\nsec-websocket-key: x\r\n\r\n',
      /^HTTP\/1\.1 400 /,
    ],
    [
      'a name that is not the server’s',
      'GET /health HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n',
      /^HTTP\/1\.1 403 /,
    ],
    ['a host that is none', 'GET /health HTTP/1.1\r\nhost: a@b/c\r\nconnection: close\r\n\r\n', /^HTTP\/1\.1 400 /],
  ])('%s gets the error envelope too', async (_, bytes, status) => {
    const { port } = await start();
    const received = await sendRaw(port, bytes);
    expect(received).toMatch(status);
    expect(received).toMatch(/\r\nx-request-id: [0-9a-f]{32}\r\n/i);
    const body = JSON.parse(received.slice(received.indexOf('\r\n\r\n') + 4)) as { error: object };
    expect(Object.keys(body.error).toSorted()).toEqual(['code', 'message', 'param', 'type']);
  });
});

describe('a client that goes away', () => {
  test.each([false, true])('frees its sequence within a step (stream: %s)', async (stream) => {
    const gate = new Gate();
    const { url, engine, log } = await start({ engine: holdAt(2, gate) });
    const caller = new AbortController();
    const response = send(url, { prompt: 'x', stream }, caller.signal);
    const ended = response.then((whole) => whole.text()).catch(() => 'cut');
    await until('two steps ran', () => engine.steps === 2);
    caller.abort();
    expect(await within('the client gives up', ended)).toBe('cut');
    // The server must have seen the end of the connection before the engine may go on.
    await new Promise((resolve) => setTimeout(resolve, 50));
    gate.open();
    await until('the sequence is free', () => engine.load().running === 0);
    expect(engine.finishes.map(({ reason }) => reason)).toEqual(['aborted']);
    expect(engine.steps).toBe(2);
    await until('the request is logged', () => log.length > 0);
    expect(log.at(-1)?.fields).toMatchObject({ errorCode: 'aborted' });
    expect(log.some(({ level }) => level === 'error')).toBe(false);
  });

  test('in the middle of its body is no error of the server', async () => {
    const { port, log } = await start();
    const request = httpRequest({
      port,
      path: '/v1/completions',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.on('error', () => undefined);
    request.write('{"prompt":');
    await new Promise((resolve) => setTimeout(resolve, 50));
    request.destroy();
    await until('the request is logged', () => log.length > 0);
    expect(log.map(({ level, fields }) => [level, fields['errorCode']])).toEqual([['info', 'aborted']]);
  });
});

describe('a client that reads', () => {
  test('no more is cut, and no longer counts among its requests', async () => {
    const text = 'y'.repeat(20_000);
    const { port, url, log } = await start({
      engine: { script: () => ({ text, accepts: [0] }), info: { maxContext: 30_000 } },
      config: { stalledResponseMs: 500, maxRequestsPerKey: 1 },
    });
    const socket = connect(port, '127.0.0.1');
    const body = JSON.stringify({ prompt: 'x', stream: true, max_tokens: 20_000 });
    const head = `POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
    socket.pause().on('error', () => undefined);
    socket.write(`${head}\r\n\r\n${body}`);
    await until('it is cut', () => log.some(({ message }) => message === 'response cut'), 20_000);
    await until('it is logged', () => log.some(({ message }) => message === 'request'));
    expect(log.at(-1)!.fields).toMatchObject({ path: '/v1/completions', errorCode: 'aborted' });
    expect((await send(url, { prompt: 'x', max_tokens: 1 })).status).toBe(200);
    socket.destroy();
  });

  test('what says nothing yet is not cut', async () => {
    const gate = new Gate();
    const { url } = await start({ engine: holdAt(1, gate), config: { stalledResponseMs: 50 } });
    const response = await send(url, { prompt: 'x', stream: true, max_tokens: 4 });
    await new Promise((resolve) => setTimeout(resolve, 500));
    gate.open();
    expect(ssePayloads(await response.text()).at(-1)).toMatchObject({ choices: [{ finish_reason: 'length' }] });
  });

  test('slowly is waited for: an engine that makes one event at a time is held back, and the answer is whole', async () => {
    const text = 'y'.repeat(20_000);
    const { port, engine } = await start({ engine: { script: () => ({ text, accepts: [0] }), info: { maxContext: 30_000 } } });
    const request = httpRequest({
      port,
      path: '/v1/completions',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    request.end(JSON.stringify({ prompt: 'x', stream: true, max_tokens: 20_000 }));
    const response = await within(
      'the headers come',
      new Promise<IncomingMessage>((resolve) => request.once('response', resolve)),
    );
    response.pause();
    let steps = -1;
    await until(
      'the engine is held back',
      () => {
        const stands = steps === engine.steps;
        steps = engine.steps;
        return stands;
      },
      20_000,
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(engine.steps).toBe(steps);
    expect(steps).toBeLessThan(20_000);
    let received = '';
    response.setEncoding('utf8').on('data', (data: string) => {
      received += data;
    });
    response.resume();
    await within('the stream ends', new Promise((resolve) => response.once('end', resolve)), 20_000);
    expect(streamFacts(ssePayloads(received)).pieces[0]?.join('')).toBe(text);
  });
});

describe('a server that closes', () => {
  test('lets a running answer finish and takes no new connection', async () => {
    const gate = new Gate();
    const { url, close, engine } = await start({ engine: holdAt(1, gate), config: { closeGraceMs: 10_000 } });
    const running = send(url, { prompt: 'x', max_tokens: 4 });
    await until('the request runs', () => engine.steps === 1);
    const closing = close();
    await expect(send(url, { prompt: 'x' })).rejects.toThrow();
    gate.open();
    expect((await within('the answer comes', running)).status).toBe(200);
    await within('the server closes', closing, 2000);
  });

  test('cuts what does not end in time', async () => {
    const gate = new Gate();
    const { url, close, engine } = await start({ engine: holdAt(1, gate), config: { closeGraceMs: 50 } });
    const running = send(url, { prompt: 'x', max_tokens: 4 }).catch(() => 'cut');
    await until('the request runs', () => engine.steps === 1);
    await within('the server closes', close(), 2000);
    expect(await running).toBe('cut');
    gate.open();
    await until('the sequence is free', () => engine.load().running === 0);
  });
});

test('an address that is taken is told in one sentence', async () => {
  const { port, options } = await start();
  await expect(startServer({ ...options, host: '127.0.0.1', port })).rejects.toMatchObject({
    code: 'invalid_config',
    message: expect.stringContaining(`127.0.0.1:${port}`),
  });
});
