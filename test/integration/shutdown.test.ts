/** The real process and its signals. */
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { until, within } from '../support/labelled-timeout.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { OtlpReceiver } from '../support/otlp-receiver.ts';
import { ssePayloads } from '../support/read-sse.ts';
import { ServedProcess } from '../support/served-process.ts';
import { WsClient } from '../support/ws-client.ts';

const PATH = '/v1/completions';
const LOADING_MS = 60_000;
const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

async function start(...args: string[]): Promise<ServedProcess> {
  const server = await ServedProcess.start(temporary.path, args);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** An answer that takes about a second. */
const body = (maxTokens: number) => ({
  prompt: 'once',
  max_tokens: maxTokens,
  temperature: 0,
  ignore_eos: true,
  draft_tokens: 0,
});

function finished(payload: Readonly<Record<string, unknown>>): boolean {
  return (payload['choices'] as { finish_reason: string | null }[]).some((choice) => choice.finish_reason !== null);
}

/** Begins a stream, and returns when its first chunk has come. */
async function stream(url: string, maxTokens: number) {
  const response = await fetch(url + PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body(maxTokens), stream: true, stream_options: { include_usage: true } }),
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value ?? '';
  const rest = async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += value;
    }
  };
  return { whole: () => within('the stream ends', rest()) };
}

describe('SIGTERM', () => {
  it('lets answers end and refuses new ones, tells that the server is not ready, and exits with 0', async () => {
    const server = await start();
    const idle = await WsClient.connect(server.url, PATH);
    const busy = await WsClient.connect(server.url, PATH);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    const running = await stream(server.url, 450);
    busy.send({ ...body(450), request_id: 'a', stream_options: { include_usage: true } });
    await busy.frame(0);
    server.signal('SIGTERM');
    await until('it says that it stops', () => server.output.includes('stopping'));
    expect(await idle.closed()).toMatchObject({ code: 1001 });
    expect((await fetch(`${server.url}/health`)).status).toBe(503);
    const refused = await fetch(server.url + PATH, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body(1)),
    });
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([503, true]);
    const payloads = ssePayloads(await running.whole());
    expect(payloads.at(-1)).toMatchObject({ usage: { completion_tokens: 450 } });
    const frames = await busy.answer('a');
    expect(frames.at(-2)).toMatchObject({ usage: { completion_tokens: 450 } });
    expect(await busy.closed()).toMatchObject({ code: 1001 });
    expect(await server.exit()).toBe(0);
  });

  it('leaves slow readers the time until the deadline', async () => {
    const server = await start();
    const request = httpRequest(server.url + PATH, { method: 'POST', headers: { 'content-type': 'application/json' } });
    // More than the buffers between the two hold.
    request.end(JSON.stringify({ ...body(450), n: 16, stream: true, logprobs: 20 }));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.pause();
    const running = async () => /num_requests_running\S* (\d+)/.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1];
    while ((await running()) !== '0') await new Promise((resolve) => setTimeout(resolve, 100));
    server.signal('SIGTERM');
    await until('it says that it stops', () => server.output.includes('stopping'));
    await new Promise((resolve) => setTimeout(resolve, 5000));
    const text = await within('the stream ends', Readable.from(response.setEncoding('utf8')).toArray());
    expect(ssePayloads(text.join('')).filter((payload) => finished(payload))).toHaveLength(16);
    expect(await server.exit()).toBe(0);
  });

  it('ends answers that take longer than the deadline, which are told so, and exits with 0', async () => {
    const server = await start('--shutdown-timeout', '0');
    const running = await stream(server.url, 490);
    server.signal('SIGTERM');
    const payloads = ssePayloads(await running.whole());
    expect(payloads.at(-1)).toMatchObject({ error: { code: 'unavailable' } });
    expect(await server.exit()).toBe(0);
  });

  it('sends what traces are left, and every line of its log is JSON where that is asked for', async () => {
    await using collector = await OtlpReceiver.open();
    const server = await start('--otlp-endpoint', collector.url, '--log-format', 'json');
    const response = await fetch(server.url + PATH, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': 'r1' },
      body: JSON.stringify(body(20)),
    });
    expect(response.status).toBe(200);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    server.signal('SIGTERM');
    expect(await server.exit()).toBe(0);
    const span = collector.only('text_completion target');
    expect(span.attributes).toMatchObject({ 'blockdraft.request.id': 'r1', 'gen_ai.usage.output_tokens': 20 });
    expect(collector.requests.map(({ path }) => path)).toContain('/v1/traces');
    const lines = server.output.trim().split('\n');
    const log = lines
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .filter(({ message }) => message !== 'preparing weights');
    expect(log.map(({ message }) => message)).toEqual(['listening', 'request', 'stopping']);
    expect(log[1]).toMatchObject({ requestId: 'r1', traceId: span.traceId, path: PATH, status: 200, completionTokens: 20 });
  });

  it('twice ends the process at once', async () => {
    const server = await start();
    await stream(server.url, 490);
    server.signal('SIGTERM');
    await until('it says that it stops', () => server.output.includes('stopping'));
    server.signal('SIGTERM');
    expect(await server.exit()).toBe(1);
  });

  it('while idle exits with 0, as SIGINT does', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const server = await start();
      server.signal(signal);
      expect(await server.exit()).toBe(0);
    }
  });
});

describe('a drafter that hangs', () => {
  const module = ['--drafter-module', resolve(import.meta.dirname, '../support/modules/hanging.ts')];
  const begin = (...args: string[]) => {
    const server = new ServedProcess(temporary.path, [...module, ...args]);
    onTestFinished(() => server[Symbol.asyncDispose]());
    return server;
  };

  it('while the server loads does not keep SIGTERM from ending it, with 0', async () => {
    const server = begin();
    await until('it hangs', () => server.output.includes('asked for a draft'), LOADING_MS);
    server.signal('SIGTERM');
    expect(await server.exit(LOADING_MS)).toBe(0);
  });

  it('while the server loads is named, and the server does not start', async () => {
    const server = begin('--drafter-timeout-ms', '50');
    expect(await server.exit(LOADING_MS)).toBe(1);
    expect(server.output).toContain('hanging did not answer within 300 ms; start without it');
  });

  it('in an answer does not keep SIGTERM from ending the server, with 0', async () => {
    const server = await start(...module, '--draft-tokens', '4', '--drafter-timeout-ms', '100');
    const response = await fetch(server.url + PATH, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body(20), draft_tokens: 4 }),
    });
    expect(await response.json()).toMatchObject({ usage: { completion_tokens: 20 } });
    expect(server.output).toContain('asked for a draft');
    server.signal('SIGTERM');
    expect(await server.exit(LOADING_MS)).toBe(0);
  });
});
