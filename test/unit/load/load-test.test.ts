/** The runner as a whole, on scripts that k6 would run alike. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { EXIT } from '../../../src/load/load-test.ts';
import { summaryExport } from '../../../src/load/summary/summary-export.ts';
import { runScript } from '../../support/load-script.ts';
import { TemporaryFolder } from '../../support/load-test-target.ts';

const temporary = new TemporaryFolder();
let server: Server;
let url = '';
const asked: { readonly method: string; readonly path: string; readonly body: string; readonly type: string }[] = [];
let mostAtOnce = 0;
let atOnce = 0;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const path = request.url ?? '';
    asked.push({ method: request.method ?? '', path, body, type: request.headers['content-type'] ?? '' });
    const delay = Number(/delay=(\d+)/.exec(path)?.[1] ?? 0);
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    atOnce -= 1;
    response.writeHead(path.startsWith('/missing') ? 404 : 200, { 'content-type': 'application/json', 'x-own': 'yes' });
    response.end(JSON.stringify({ path, inner: { list: [1, 2] } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await temporary[Symbol.asyncDispose]();
});

let count = 0;
const run = (script: string, options: Parameters<typeof runScript>[2] = {}) =>
  runScript(join(temporary.path, String(count++)), script, { env: { URL: url }, ...options });

describe('a script', () => {
  it('asks, checks, groups and measures; the summary has it all', async () => {
    const { exitCode, data, outputs } = await run(`
      import { check, group, sleep } from 'k6';
      import http from 'k6/http';
      import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
      const length = new Trend('length'), times = new Trend('times', true), good = new Rate('good'), all = new Counter('all'), size = new Gauge('size');
      export const options = {
        vus: 1, iterations: 4, tags: { run: 'one' },
        thresholds: { length: ['avg==2.5', 'p(95)<1'], 'length{parity:even}': ['max==4'], http_req_failed: ['rate<0.01'] },
        summaryTrendStats: ['avg', 'p(90)', 'count'],
      };
      export default function () {
        group('outer', () => group('inner', () => {
          const response = http.get(__ENV.URL + '/a?b=c', { headers: { 'x-me': '1' }, tags: { name: 'A' } });
          check(response, { 'is fine': (r) => r.status === 200 && r.headers['X-Own'] === 'yes', 'has numbers': (r) => r.json('inner.list')[1] === 2, 'never': () => false });
        }));
        length.add(__ITER + 1, { parity: (__ITER + 1) % 2 === 0 ? 'even' : 'odd' });
        times.add(12); good.add(__ITER > 0); all.add(2); size.add(__ITER);
        sleep(0.01);
      }`);
    expect(exitCode).toBe(EXIT.thresholdsCrossed);
    expect(data.metrics['length']).toEqual({
      type: 'trend',
      contains: 'default',
      values: { avg: 2.5, 'p(90)': 3.7, count: 4 },
      thresholds: { 'avg==2.5': { ok: true }, 'p(95)<1': { ok: false } },
    });
    expect(data.metrics['length{parity:even}']).toMatchObject({ values: { avg: 3 }, thresholds: { 'max==4': { ok: true } } });
    expect(data.metrics['times']).toMatchObject({ contains: 'time' });
    expect(data.metrics['good']?.values).toEqual({ rate: 0.75, passes: 3, fails: 1 });
    expect(data.metrics['all']?.values['count']).toBe(8);
    expect(data.metrics['size']?.values).toEqual({ value: 3, min: 0, max: 3 });
    expect(data.metrics['checks']?.values).toEqual({ rate: 8 / 12, passes: 8, fails: 4 });
    expect(data.metrics['iterations']?.values['count']).toBe(4);
    expect(data.metrics['http_reqs']?.values['count']).toBe(4);
    expect(data.metrics['http_req_duration{expected_response:true}']?.values['count']).toBe(4);
    expect(data.metrics['iteration_duration']?.values['avg']).toBeGreaterThan(10);
    expect(data.metrics['group_duration']?.values['count']).toBe(8);
    const inner = data.root_group.groups[0]?.groups[0];
    expect(inner).toMatchObject({ name: 'inner', path: '::outer::inner' });
    expect(inner?.checks).toContainEqual({ name: 'never', path: '::outer::inner::never', passes: 0, fails: 4 });
    expect(data.state.testRunDurationMs).toBeGreaterThan(40);
    expect(outputs['stdout']).toMatch(/✗ 'p\(95\)<1' p\(95\)=3\.85/);
    expect(outputs['stdout']).toMatch(/✗ never\n\s+↳ 0% — ✓ 0 \/ ✗ 4/);
    const exported = summaryExport(data) as { metrics: Record<string, Record<string, unknown>>; root_group: object };
    // In this older shape a threshold is true when it was crossed.
    expect(exported.metrics['length']).toMatchObject({ avg: 2.5, thresholds: { 'avg==2.5': false, 'p(95)<1': true } });
    expect(exported.root_group).toMatchObject({
      groups: { outer: { groups: { inner: { checks: { never: { fails: 4 } } } } } },
    });
  });

  it('sends bodies and forms, several requests at once, and asynchronously', async () => {
    asked.length = 0;
    mostAtOnce = 0;
    const { exitCode, data } = await run(`
      import { check } from 'k6';
      import http from 'k6/http';
      export const options = { thresholds: { checks: ['rate==1'] } };
      export default async function () {
        http.post(__ENV.URL + '/json', JSON.stringify({ a: 1 }), { headers: { 'Content-Type': 'application/json' } });
        http.post(__ENV.URL + '/form', { a: 'x y' });
        const list = http.batch([['GET', __ENV.URL + '/1?delay=80'], { method: 'POST', url: __ENV.URL + '/2?delay=80', body: 'b' }, __ENV.URL + '/3?delay=80']);
        const named = http.batch({ one: __ENV.URL + '/named' });
        const pair = await Promise.all([http.asyncRequest('GET', __ENV.URL + '/x?delay=80'), http.asyncRequest('GET', __ENV.URL + '/y?delay=80')]);
        const late = http.get(__ENV.URL + '/late?delay=2000', { timeout: '50ms' });
        const nobody = http.get('http://127.0.0.1:1/');
        check(null, {
          order: () => list.map((r) => r.json().path[1]).join('') === '123', named: () => named.one.json('path') === '/named',
          pair: () => pair.map((r) => r.json('path')[1]).join('') === 'xy',
          late: () => late.status === 0 && late.error_code === 1050, nobody: () => nobody.status === 0 && nobody.error_code === 1212,
          missing: () => http.get(__ENV.URL + '/missing').error_code === 1404,
          expected: () => http.get(__ENV.URL + '/missing', { responseCallback: http.expectedStatuses(404) }).status === 404,
        });
      }`);
    expect(data.root_group.checks.filter(({ fails }) => fails > 0)).toEqual([]);
    expect(exitCode).toBe(EXIT.ok);
    expect(mostAtOnce).toBe(3);
    expect(asked.slice(0, 2)).toEqual([
      { method: 'POST', path: '/json', body: '{"a":1}', type: 'application/json' },
      { method: 'POST', path: '/form', body: 'a=x+y', type: 'application/x-www-form-urlencoded' },
    ]);
    // Late, nobody and the first missing one.
    expect(data.metrics['http_req_failed']?.values['passes']).toBe(3);
  });

  it('has its variables for each virtual user, and what is shared for all of them once', async () => {
    const { data, log } = await run(
      `
      import exec from 'k6/execution';
      import { SharedArray } from 'k6/data';
      import { Counter } from 'k6/metrics';
      import { helper } from './helper.ts';
      const words = new SharedArray('words', () => { console.log('read'); return open('./words.txt').split(' ').map((word) => ({ word })); });
      const wrong = new Counter('wrong'), seen = new Counter('seen');
      let own = 0;
      export const options = { scenarios: { s: { executor: 'per-vu-iterations', vus: 3, iterations: 4, env: { KIND: 'scenario' }, tags: { load: '3' } } }, thresholds: { 'seen{load:3}': ['count==12'], 'seen{vu:2}': ['count==4'] } };
      export default function () {
        if (own++ !== __ITER || exec.vu.iterationInScenario !== __ITER || exec.vu.idInTest !== __VU) wrong.add(1);
        if (words[1].word !== 'two' || words.length !== 3 || helper(1) !== 2 || __ENV.KIND !== 'scenario' || exec.scenario.name !== 's') wrong.add(1);
        try { words[0].word = 'changed'; wrong.add(1); } catch {}
        seen.add(1, { vu: String(__VU) });
      }`,
      { files: { 'words.txt': 'one two three', 'helper.ts': 'export const helper = (n: number): number => n + 1;' } },
    );
    expect(data.metrics['wrong']).toBeUndefined();
    expect(data.metrics['seen{load:3}']?.thresholds).toEqual({ 'count==12': { ok: true } });
    expect(data.metrics['seen{vu:2}']?.thresholds).toEqual({ 'count==4': { ok: true } });
    expect(log.filter((line) => line.includes('read'))).toHaveLength(1);
  });

  it('lasts until its timers are done', async () => {
    const { data } = await run(`
      import { Counter } from 'k6/metrics';
      import { setTimeout as later } from 'k6/timers';
      const ends = new Counter('ends');
      export const options = { vus: 1, iterations: 2 };
      export default function () { later(() => setTimeout(() => ends.add(1), 30), 30); }`);
    expect(data.metrics['ends']?.values['count']).toBe(2);
    expect(data.metrics['iteration_duration']?.values['min']).toBeGreaterThanOrEqual(59);
  });

  it.each([
    ['cuts', 1006, 1],
    ['closes with 1013', 1013, 1],
    ['closes with 1001', 1001, 0],
  ])('hears of a WebSocket that its peer %s', async (_, code, errors) => {
    const sockets = new WebSocketServer({ port: 0 });
    sockets.on('connection', (socket) => (code === 1006 ? socket.terminate() : socket.close(code, 'so')));
    await once(sockets, 'listening');
    const { data } = await run(
      `
      import { Counter } from 'k6/metrics';
      import { WebSocket } from 'k6/websockets';
      const heard = new Counter('heard');
      export const options = { thresholds: { 'heard{event:error}': ['count>=0'], 'heard{event:close}': ['count==1'] } };
      export default function () {
        const socket = new WebSocket(__ENV.WS);
        for (const event of ['error', 'close']) socket.addEventListener(event, () => heard.add(1, { event }));
      }`,
      { env: { WS: `ws://127.0.0.1:${(sockets.address() as AddressInfo).port}` } },
    );
    sockets.close();
    expect(data.metrics['heard{event:error}']?.values['count']).toBe(errors);
    expect(data.metrics['heard{event:close}']?.values['count']).toBe(1);
  });

  it('sets up once, and gets what that returned', async () => {
    const { exitCode, outputs, log } = await run(`
      import { check } from 'k6';
      export const options = { vus: 2, iterations: 4, thresholds: { checks: ['rate==1'] } };
      export function setup() { console.log('set up'); return { word: 'hello' }; }
      export default function (data) { check(data, { given: ({ word }) => word === 'hello' }); }
      export function teardown(data) { console.warn('torn down', data.word); }
      export function handleSummary(data) { return { stdout: 'checks ' + data.metrics.checks.values.passes, 'some/file.json': JSON.stringify(data.root_group.checks) }; }`);
    expect(exitCode).toBe(EXIT.ok);
    expect(outputs).toEqual({ stdout: 'checks 4', 'some/file.json': expect.stringContaining('"given"') });
    expect(log.map((line) => line.replace(/\[\d+\]/, '').trim())).toEqual(['INFO  set up', 'WARN  torn down hello']);
  });
});

describe('a test', () => {
  it('ends as soon as a threshold says so', async () => {
    const started = performance.now();
    const { exitCode, data, log } = await run(`
      import { sleep } from 'k6';
      import { Rate } from 'k6/metrics';
      const good = new Rate('good');
      export const options = { vus: 2, duration: '1m', thresholds: { good: [{ threshold: 'rate>0.5', abortOnFail: true }] } };
      export default function () { good.add(false); sleep(0.05); }`);
    expect(exitCode).toBe(EXIT.thresholdsCrossed);
    expect(performance.now() - started).toBeLessThan(15_000);
    expect(data.metrics['good']?.values['fails']).toBeGreaterThan(0);
    expect(log.at(-1)).toMatch(/rate>0\.5 of good was crossed/);
  });

  it('interrupts what goes on for too long, sleeping threads too', async () => {
    const started = performance.now();
    const { exitCode, data } = await run(`
      import { sleep } from 'k6';
      export const options = { scenarios: { s: { executor: 'constant-vus', vus: 1, duration: '200ms', gracefulStop: '200ms' } } };
      export default function () { sleep(60); }`);
    expect(performance.now() - started).toBeLessThan(15_000);
    expect(exitCode).toBe(EXIT.ok);
    expect(data.metrics['iterations']).toBeUndefined();
  });

  it('counts iterations that no user was free for', async () => {
    const { data, exitCode } = await run(`
      import { sleep } from 'k6';
      export const options = { scenarios: { s: { executor: 'constant-arrival-rate', rate: 10, duration: '1s', preAllocatedVUs: 1, tags: { load: 'x' } } }, thresholds: { 'dropped_iterations{scenario:s}': ['count>=0'], 'dropped_iterations{load:x}': ['count==0'] } };
      export default function () { sleep(0.55); }`);
    const started = data.metrics['iterations']?.values['count'] ?? 0;
    const dropped = data.metrics['dropped_iterations{scenario:s}']?.values['count'] ?? 0;
    // As in k6, none of the scenario's own tags.
    expect(exitCode).toBe(EXIT.ok);
    expect(started).toBeLessThanOrEqual(2);
    // What was due in a moment in which this machine stood still is not made up for.
    expect(dropped).toBeGreaterThanOrEqual(5);
    expect(started + dropped).toBeLessThanOrEqual(10);
  });

  it.each([
    [
      'fails when told to',
      `import exec from 'k6/execution'; export default function () { exec.test.fail('no'); }`,
      EXIT.markedFailed,
    ],
    [
      'is aborted',
      `import exec from 'k6/execution'; export default function () { exec.test.abort('enough'); }`,
      EXIT.scriptAborted,
    ],
    [
      'fails with its setup',
      `export function setup() { throw new Error('no server'); } export default function () {}`,
      EXIT.scriptError,
    ],
    ['lives on when an iteration throws', `export default function () { throw new Error('once'); }`, EXIT.ok],
    [
      'waits so long for its setup',
      `import { sleep } from 'k6'; export const options = { setupTimeout: '50ms' }; export function setup() { sleep(30); } export default function () {}`,
      EXIT.setupTimeout,
    ],
  ])('%s', async (_, script, code) => {
    expect((await run(script)).exitCode).toBe(code);
  });

  it('ends when a user dies, in any executor, and says so', async () => {
    for (const scenario of [
      { executor: 'constant-vus', vus: 2, duration: '1h' },
      { executor: 'shared-iterations', vus: 2, iterations: 9 },
    ]) {
      const { exitCode, log } = await run(`
        import { sleep } from 'k6';
        export const options = { scenarios: { s: ${JSON.stringify(scenario)} } };
        export default function () { if (__VU === 2) Promise.reject(new Error('nobody catches it')); sleep(0.2); }`);
      expect(exitCode).toBe(EXIT.scriptError);
      expect(log.join('\n')).toMatch(/a virtual user has died: .*nobody catches it/);
    }
  });

  it('knows what was measured before an iteration was cut off', async () => {
    const { data } = await run(`
      import http from 'k6/http';
      import { Counter } from 'k6/metrics';
      const asked = new Counter('asked');
      export const options = { scenarios: { s: { executor: 'constant-vus', vus: 1, duration: '200ms', gracefulStop: '200ms' } } };
      export default function () { asked.add(1); http.get(__ENV.URL + '/?delay=60000', { timeout: '2m' }); }`);
    expect(data.metrics['iterations']).toBeUndefined();
    expect(data.metrics['asked']?.values['count']).toBe(1);
  });

  it('may have many scenarios', async () => {
    const warnings: string[] = [];
    const listen = (warning: Error) => warnings.push(warning.name);
    process.on('warning', listen);
    const scenarios = Object.fromEntries(
      Array.from({ length: 12 }, (_, i) => [`s${i}`, { executor: 'shared-iterations', startTime: '100ms' }]),
    );
    const { data } = await run(
      `export const options = { scenarios: ${JSON.stringify(scenarios)} }; export default function () {}`,
    );
    process.off('warning', listen);
    expect(data.metrics['iterations']?.values['count']).toBe(12);
    expect(warnings).not.toContain('MaxListenersExceededWarning');
  });

  it('can be interrupted, and sums up', async () => {
    const interrupted = new AbortController();
    const { exitCode, data } = await run(
      `import { sleep } from 'k6'; export const options = { vus: 1, duration: '1h' }; export default function () { sleep(0.05); }`,
      {
        signal: interrupted.signal,
        onProgress: ({ iterations }) => {
          if (iterations > 0) interrupted.abort();
        },
      },
    );
    expect(exitCode).toBe(EXIT.interrupted);
    expect(data.metrics['iterations']?.values['count']).toBeGreaterThan(0);
  });

  it.each([
    [
      'imports what there is not',
      `import { browser } from 'k6/browser'; export default function () { browser.close(); }`,
      /k6\/browser/,
    ],
    ['does not compile', 'export default function (', /compiles/],
    [
      'has no function for a scenario',
      `export const options = { scenarios: { s: { executor: 'constant-vus', duration: '1s', exec: 'other' } } }; export default function () {}`,
      /Expected a function other among those that the script exports, as scenario s runs it, got default;/,
    ],
    [
      'has no default function for none',
      'export function one() {}',
      /Expected a function default .*, got one; .*leave out --vus/,
    ],
    [
      'makes metrics of one name twice',
      `import { Rate, Trend } from 'k6/metrics'; new Rate('m'); new Trend('m'); export default function () {}`,
      /one definition of metric m/,
    ],
    ['sleeps in its init code', `import { sleep } from 'k6'; sleep(1); export default function () {}`, /init code/],
    [
      'has thresholds of nothing',
      `export const options = { thresholds: { nothing: ['avg<1'] } }; export default function () {}`,
      /nothing/,
    ],
  ])('is refused when the script %s', async (_, script, message) => {
    await expect(run(script)).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringMatching(message) });
  });
});
