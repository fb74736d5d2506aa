/**
 * A real Prometheus scrapes a loaded server; every query of the dashboard, the alerts and the autoscaler has to return numbers.
 *
 *   npx tsx scripts/check-dashboard.ts [--prometheus prometheus] [--seconds 45] [--out bench/results/dashboard.json]
 *
 * The server has the small trained pair of the tests, shadows (one of which fails), a split, audits, a drafter that stalls, and
 * gets a swap, bad requests and more than it can queue: so that everything that is counted happens.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { provenance } from '../bench/lib/provenance.ts';
import { TESTBED_DRAFTER, TESTBED_TARGET } from '../test/support/testbed-engine.ts';

const ROOT = resolve(import.meta.dirname, '..');
const KEY = 'key-of-the-check';
/** Of a pod, as service discovery would add them. */
const POD = { namespace: 'check', pod: 'server-0' };
const WINDOW = '20s';
const START_MS = 120_000;

interface Query {
  readonly where: string;
  readonly expr: string;
}

interface Answer extends Query {
  readonly series: number;
  readonly finite: number;
  readonly example: string | null;
}

const { values: options } = parseArgs({
  options: {
    prometheus: { type: 'string', default: 'prometheus' },
    seconds: { type: 'string', default: '45' },
    out: { type: 'string', default: join(ROOT, 'bench/results/dashboard.json') },
  },
});

const work = mkdtempSync(join(tmpdir(), 'blockdraft-dashboard-'));
const children: ChildProcess[] = [];
try {
  const server = await startServer();
  const prometheus = await startPrometheus(server.url);
  await load(server.url, Number(options.seconds) * 1000);
  const answers: Answer[] = [];
  for (const query of queries()) answers.push(await ask(prometheus, query));
  const rules = await ruleHealth(prometheus);
  const empty = answers.filter(({ finite }) => finite === 0).map(({ where }) => where);
  const unhealthy = rules.filter(({ health }) => health !== 'ok').map(({ alert }) => alert);
  const report = {
    ...provenance(server.runtimeVersion),
    command: process.argv
      .slice(1)
      .map((part) => part.replace(`${ROOT}/`, ''))
      .join(' '),
    prometheus: await version(prometheus),
    seconds: Number(options.seconds),
    queries: answers.length,
    empty,
    rules,
    answers,
  };
  writeFileSync(options.out, `${JSON.stringify(report, null, 1)}\n`);
  for (const { where, series, example } of answers)
    console.log(`${String(series).padStart(3)} series  ${where}: ${example ?? 'nothing'}`);
  console.log(
    `${answers.length} queries, ${empty.length} without a number; ${rules.length} rules, ${unhealthy.length} not healthy`,
  );
  process.exitCode = empty.length + unhealthy.length === 0 ? 0 : 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(work, { recursive: true, force: true });
}

async function startServer(): Promise<{ readonly url: string; readonly runtimeVersion: string }> {
  const modules = join(ROOT, 'test/support/modules');
  const child = start(process.execPath, [
    join(ROOT, 'bin/blockdraft.js'),
    ...['serve', '--target', TESTBED_TARGET, '--cache-dir', work, '--port', '0', '--api-key', KEY, '--log-format', 'json'],
    ...['--drafter', `dflash=${TESTBED_DRAFTER}`, '--drafter', 'ngram', '--draft-tokens', '4'],
    ...['--drafter-module', `throwing=${modules}/throwing.ts`, '--drafter-module', `stalling=${modules}/stalling.ts`],
    ...['--shadow', 'ngram', '--shadow', 'throwing', '--shadow-rate', '0.5', '--split', 'dflash=0.6,ngram=0.2,none=0.2'],
    ...['--audit-rate', '1', '--drafter-timeout-ms', '300', '--max-num-seqs', '2', '--max-num-queued-reqs', '1'],
    ...['--allow-drafter-swap', '--drafter-dir', dirname(TESTBED_DRAFTER)],
  ]);
  return JSON.parse(await announced(child, /(\{.*"message":"listening"\})/));
}

async function startPrometheus(target: string): Promise<string> {
  const rule = parse(readFileSync(join(ROOT, 'deploy/kubernetes/monitoring/prometheus-rule.yaml'), 'utf8'));
  writeFileSync(join(work, 'rules.json'), JSON.stringify(rule.spec));
  writeFileSync(
    join(work, 'prometheus.json'),
    JSON.stringify({
      global: { scrape_interval: '1s', evaluation_interval: '2s' },
      rule_files: ['rules.json'],
      scrape_configs: [
        {
          job_name: 'blockdraft',
          authorization: { credentials: KEY },
          static_configs: [{ targets: [new URL(target).host], labels: POD }],
        },
      ],
    }),
  );
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const flags = { 'config.file': 'prometheus.json', 'storage.tsdb.path': 'data', 'web.listen-address': `127.0.0.1:${port}` };
  const child = start(
    options.prometheus,
    Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
  );
  await announced(child, /(Server is ready)/);
  return url;
}

/** Requests of all kinds until the time is over, and some beyond what may wait. */
async function load(url: string, ms: number): Promise<void> {
  const end = performance.now() + ms;
  const post = (path: string, body: object) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then(async (response) => ({ status: response.status, text: await response.text() }));
  const swap = await post('/v1/drafters/dflash/load', { path: 'drafter' });
  if (swap.status !== 200) throw new Error(`Expected the swap to be taken, got ${swap.status} ${swap.text}`);
  const client = async (index: number): Promise<void> => {
    for (let i = 0; performance.now() < end; i++) {
      const prompt = `Once upon a time there was a fox, and ${'then '.repeat(i % 7)}`;
      const body = { prompt, max_tokens: 16 + 8 * (i % 3), temperature: i % 2, seed: 100 * index + i, stream: index === 0 };
      if (i % 11 === 5) await post('/v1/completions', { prompt, unknown: 1 });
      else await post('/v1/completions', i % 17 === 3 ? { ...body, drafter: 'stalling' } : body);
      // Audits run while nothing else does.
      if (i % 10 === 9) await sleep(300);
    }
  };
  const burst = async (): Promise<void> => {
    for (let left = 4; left > 0; left--) {
      await sleep(ms / 5);
      await Promise.all(Array.from({ length: 8 }, () => post('/v1/completions', { prompt: 'x', max_tokens: 32 })));
    }
  };
  await Promise.all([client(0), client(1), burst()]);
}

function queries(): readonly Query[] {
  const dashboard = JSON.parse(readFileSync(join(ROOT, 'deploy/kubernetes/monitoring/dashboard.json'), 'utf8'));
  const adapter = parse(readFileSync(join(ROOT, 'deploy/kubernetes/autoscaling/prometheus-adapter-values.yaml'), 'utf8'));
  const shown = (expr: string) =>
    expr.replaceAll('$__rate_interval', WINDOW).replaceAll('$model', '.*').replaceAll('$instance', '.*');
  return [
    ...dashboard.panels.flatMap((panel: { title: string; targets?: readonly { expr: string; legendFormat: string }[] }) =>
      (panel.targets ?? []).map(({ expr, legendFormat }) => ({ where: `${panel.title} (${legendFormat})`, expr: shown(expr) })),
    ),
    ...adapter.rules.custom.map((rule: { metricsQuery: string; name: { as: string } }) => ({
      where: `adapter ${rule.name.as}`,
      expr: rule.metricsQuery.replaceAll('<<.LabelMatchers>>', `namespace="${POD.namespace}",pod=~"${POD.pod}"`),
    })),
  ];
}

async function ask(prometheus: string, query: Query): Promise<Answer> {
  const response = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(query.expr)}`);
  const { status, error, data } = (await response.json()) as {
    readonly status: string;
    readonly error?: string;
    readonly data: { readonly result: readonly { readonly metric: object; readonly value: readonly [number, string] }[] };
  };
  if (status !== 'success') throw new Error(`Expected an answer to ${query.expr}, got ${error}`);
  const finite = data.result.filter(({ value }) => Number.isFinite(Number(value[1])));
  const first = finite[0];
  const example =
    first === undefined ? null : `${JSON.stringify(first.metric)} ${Number(Number(first.value[1]).toPrecision(4))}`;
  return { ...query, series: data.result.length, finite: finite.length, example };
}

async function ruleHealth(prometheus: string) {
  const response = await fetch(`${prometheus}/api/v1/rules`);
  const { data } = (await response.json()) as {
    readonly data: {
      readonly groups: readonly { readonly rules: readonly Readonly<Record<'name' | 'health' | 'state', string>>[] }[];
    };
  };
  return data.groups.flatMap(({ rules }) => rules.map(({ name, health, state }) => ({ alert: name, health, state })));
}

async function version(prometheus: string): Promise<string> {
  const response = await fetch(`${prometheus}/api/v1/status/buildinfo`);
  return ((await response.json()) as { readonly data: { readonly version: string } }).data.version;
}

function start(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(command, args, { cwd: work, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  return child;
}

/** What the pattern's group finds in the output. */
async function announced(child: ChildProcess, pattern: RegExp): Promise<string> {
  let output = '';
  const found = new Promise<string>((resolve, reject) => {
    const read = (data: Buffer): void => {
      output += data.toString();
      const match = pattern.exec(output);
      if (match !== null) resolve(match[1]!);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${child.spawnfile} ended with ${code}: ${output}`)));
    setTimeout(() => reject(new Error(`${child.spawnfile} did not start in time: ${output}`)), START_MS).unref();
  });
  found.catch(() => undefined);
  return found;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { readonly port: number };
  server.close();
  await once(server, 'close');
  return port;
}
