/** What the load tests make of answers that are slow, cut off or lost, on a server of made-up ones. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { type LoadTestResult, runLoadTest } from '../../../src/load/load-test.ts';
import { type ChatPlan, ChatServer } from '../../support/chat-server.ts';
import { runScript } from '../../support/load-script.ts';
import { TemporaryFolder } from '../../support/load-test-target.ts';

const SCRIPTS = resolve(import.meta.dirname, '../../../load-tests');

const temporary = new TemporaryFolder();
afterAll(() => temporary[Symbol.asyncDispose]());

const load = (script: string, url: string, env: Readonly<Record<string, string>>): Promise<LoadTestResult> =>
  runLoadTest({
    script: join(SCRIPTS, `${script}.ts`),
    env: { BASE_URL: url, SLO_TTFT_MS: '60000', SLO_TPOT_MS: '60000', ...env },
    signal: new AbortController().signal,
    onLog: () => undefined,
  });

const answer = (pace: number, drafts: ChatPlan['drafts'] = null): ChatPlan => ({
  pace,
  deliveries: ['Yes.'],
  tokens: 9,
  drafts,
});

/** The cells of a row of a printed table. */
function row(outputs: LoadTestResult['outputs'], start: RegExp): readonly string[] {
  const line = outputs['stdout']?.split('\n').find((text) => start.test(text)) ?? '';
  return line.trim().split(/\s{2,}/);
}

describe('a ramp', () => {
  it('counts what is cut off as due, and takes no level with it for the knee', async () => {
    let asked = 0;
    await using server = await ChatServer.start(() => answer(asked++ === 0 ? 1 : 600_000));
    const { data, outputs } = await load('ramp', server.url, { RATES: '4', LEVEL_SECONDS: '2', PAUSE_SECONDS: '1', VUS: '8' });
    const requests = data.metrics['llm_requests{load:4/s}']!.values['count']!;
    expect(requests).toBeGreaterThan(1);
    // The only one that ended was good.
    expect(data.metrics['llm_goodput{load:4/s}']?.values).toMatchObject({ rate: 1, passes: 1 });
    const [level, due, goodput, , tpot, length, errors, cut, dropped] = row(outputs, /^ *4\/s /);
    expect([level, due, goodput, tpot, length, errors, cut, dropped]).toEqual([
      '4/s',
      String(requests),
      `${(100 / requests).toFixed(0)} %`,
      // Nothing was measured of these.
      '–',
      '–',
      '0',
      String(requests - 1),
      '0',
    ]);
    expect(outputs['stdout']).toContain('No level meets the goals');
    expect(data.metrics['iterations{scenario:rate_4}']?.thresholds).toEqual({ 'count>=7.2': { ok: false } });
  });

  it('counts what nobody was free to ask as due', async () => {
    await using server = await ChatServer.start(() => answer(1200));
    const { data, outputs } = await load('ramp', server.url, {
      RATES: '8',
      LEVEL_SECONDS: '1',
      PAUSE_SECONDS: '20',
      VUS: '1',
      SUMMARY: 'all.json',
      PROVENANCE: '{"commit": "abc"}',
    });
    const dropped = data.metrics['dropped_iterations{scenario:rate_8}']!.values['count']!;
    expect(dropped).toBeGreaterThan(0);
    const cells = row(outputs, /^ *8\/s /);
    expect(cells.slice(1, 3)).toEqual([String(1 + dropped), `${(100 / (1 + dropped)).toFixed(0)} %`]);
    expect(cells[8]).toBe(String(dropped));
    const written = JSON.parse(outputs['all.json'] ?? '');
    expect(written).toMatchObject({ provenance: { commit: 'abc' }, server: { version: { version: '1.2.3' } } });
    expect(written.server.drafters.data[0]).toMatchObject({ name: 'good', length_policy: 'fixed' });
    expect(Object.keys(written.metrics)).toContain('llm_goodput{load:8/s}');
    expect(outputs['stdout']).toContain('No level meets the goals');
  });
});

describe('a sweep', () => {
  it('divides tokens by the time in which they were made, the grace time too', async () => {
    const PACE = 700;
    await using server = await ChatServer.start(() => answer(PACE));
    const env = { CONCURRENCY: '2', DRAFTERS: 'none', LEVEL_SECONDS: '1', GRACE_SECONDS: '20' };
    const { data, outputs } = await load('sweep', server.url, env);
    expect(data.metrics['llm_output_tokens']?.values['count']).toBeGreaterThanOrEqual(18);
    const speed = Number(row(outputs, /^ *2 +none /)[2]);
    expect(speed).toBeGreaterThan(0);
    // Two clients, 9 tokens in each answer.
    expect(speed).toBeLessThanOrEqual((2 * 9 * 1000) / PACE);
  });
});

describe('acceptance', () => {
  it('is pooled over rounds, whichever answer they are of', async () => {
    let asked = 0;
    // One with a single round that accepts 2 of 2, and one with 9 rounds that accept none of 1.
    await using server = await ChatServer.start(() => answer(1, asked++ === 0 ? { 2: [0, 0, 1] } : { 1: [9, 0] }));
    const { data } = await load('steady', server.url, { RATE: '2', DURATION: '1s', DRAFTER: 'good' });
    const steps = data.metrics['spec_steps']!.values['count']!;
    expect(data.metrics['spec_acceptance_length']?.values['avg']).toBeCloseTo((steps + 2) / steps, 10);
    expect(data.metrics['spec_accepted_at{position:0}']?.values['rate']).toBeCloseTo(1 / steps, 10);
  });
});

describe('an answer', () => {
  const SCRIPT = `
    import { chat } from '${SCRIPTS}/lib/chat-over-http.ts';
    import { Counter } from 'k6/metrics';
    const characters = new Counter('characters');
    export const options = { thresholds: { 'llm_errors{drafter:good}': ['count==1'], 'llm_goodput{drafter:good}': ['rate==0.5'] }, iterations: 2 };
    export default function () {
      characters.add(chat({ id: 'a', category: 'x', messages: [{ role: 'user', content: 'Hm?' }] }, { sampling: { drafter: 'good' } }).text.length);
    }`;
  const run = (server: ChatServer, name: string) =>
    runScript(join(temporary.path, name), SCRIPT, { env: { BASE_URL: server.url } });

  it('that fails counts for the drafter that was asked for', async () => {
    let asked = 0;
    await using server = await ChatServer.start(() => ({ ...answer(1), ...(asked++ === 0 ? { breakWith: '' } : {}) }));
    const { data } = await run(server, 'failing');
    expect(data.metrics['llm_errors{drafter:good}']?.thresholds).toEqual({ 'count==1': { ok: true } });
    expect(data.metrics['llm_goodput{drafter:good}']?.thresholds).toEqual({ 'rate==0.5': { ok: true } });
  });

  it('has the text of its reasoning', async () => {
    await using server = await ChatServer.start(() => ({ ...answer(1), reasoning: ['So, ', 'well. '] }));
    const { data } = await run(server, 'reasoning');
    expect(data.metrics['characters']?.values['count']).toBe(2 * 'So, well. Yes.'.length);
  });
});

describe('a conversation over WebSocket', () => {
  const converse = (url: string, name: string) =>
    runScript(
      join(temporary.path, name),
      `import { converse } from '${SCRIPTS}/lib/chat-over-websocket.ts';
       export const options = { thresholds: { llm_errors: ['count==1'], 'llm_errors{type:network}': ['count==0'], 'llm_errors{type:overloaded}': ['count==0'], llm_goodput: ['rate==0'], llm_requests: ['count==1'] } };
       const prompt = { id: 'a', category: 'x', messages: [{ role: 'user', content: 'Hm?' }] };
       export default function () { converse([{ prompt }, { prompt }], () => undefined); }`,
      { env: { BASE_URL: url } },
    );

  it.each([
    ['is cut', 'network', (socket: { terminate(): void }) => socket.terminate()],
    ['is closed as if all were well', 'network', (socket: { close(code: number): void }) => socket.close(1001)],
    [
      'is refused',
      'overloaded',
      (socket: { send(text: string): void; close(code: number): void }) => {
        socket.send(JSON.stringify({ error: { message: 'full', type: 'overloaded_error' }, request_id: null }));
        socket.close(1013);
      },
    ],
  ])('that %s is one error', async (what, type, end) => {
    const server = createServer();
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => socket.on('message', () => end(socket)));
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
    const { data } = await converse(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, what.replaceAll(' ', '-'));
    sockets.close();
    server.close();
    expect(data.metrics['llm_errors']?.values['count']).toBe(1);
    expect(data.metrics[`llm_errors{type:${type}}`]?.values['count']).toBe(1);
    expect(data.metrics['llm_goodput']?.values).toMatchObject({ passes: 0, fails: 1 });
    expect(data.metrics['llm_requests']?.values['count']).toBe(1);
  });

  it('that finds nobody is one error', async () => {
    const { data } = await converse('http://127.0.0.1:1', 'nobody');
    expect(data.metrics['llm_errors{type:network}']?.values['count']).toBe(1);
  });

  it('tells the gaps between deliveries, and of each token', async () => {
    const server = createServer();
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) =>
      socket.on('message', async () => {
        const send = (chunk: object) => socket.send(JSON.stringify({ request_id: 'r', ...chunk }));
        for (const [content, completion_tokens] of [
          ['One ', 1],
          ['two three ', 4],
          ['', 5],
          ['four', 8],
        ] as const) {
          send({ choices: [{ delta: { content } }], usage: { completion_tokens } });
          await new Promise((later) => setTimeout(later, 40));
        }
        const metrics = { time_to_first_token_ms: 1, mean_itl_ms: 1, speculative_decoding: null };
        send({ choices: [], usage: { completion_tokens: 8 }, metrics });
        send({ type: 'done' });
      }),
    );
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
    const { data } = await runScript(
      join(temporary.path, 'gaps'),
      `import { converse } from '${SCRIPTS}/lib/chat-over-websocket.ts';
       export const options = { summaryTrendStats: ['avg', 'count'] };
       export default function () { converse([{ prompt: { id: 'a', category: 'x', messages: [] } }], () => undefined); }`,
      { env: { BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } },
    );
    sockets.close();
    server.close();
    const gaps = data.metrics['llm_itl']!.values;
    const perToken = data.metrics['llm_itl_per_token']!.values;
    expect([gaps['count'], perToken['count']]).toEqual([2, 7]);
    expect(7 * perToken['avg']!).toBeCloseTo(2 * gaps['avg']!, 6);
  });
});
