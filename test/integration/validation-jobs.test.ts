/** Drafters measured by the server that serves them: in the real process, with the results of the commands. */
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { ServedProcess } from '../support/served-process.ts';
import { TESTBED_DRAFTER, TESTBED_TARGET, testbedPrompts } from '../support/testbed-engine.ts';

const BIN = resolve(import.meta.dirname, '../../bin/blockdraft.js');
const headers = { authorization: 'Bearer k', 'content-type': 'application/json' };
const prompts = testbedPrompts().filter((_, i) => i % 10 === 0);
const temporary = new TemporaryFolder();
const output = join(temporary.path, 'jobs');
const runs = join(temporary.path, 'runs');
let server: ServedProcess;

beforeAll(async () => {
  cpSync(TESTBED_DRAFTER, join(runs, 'v1', 'step-100'), { recursive: true, dereference: true });
  const folders = ['--validation-dir', output, '--drafter-dir', runs];
  server = await ServedProcess.start(temporary.path, ['--allow-validation', ...folders, '--api-key', 'k', '--threads', '2']);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await temporary[Symbol.asyncDispose]();
});

interface Card {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly message: string } | null;
  readonly exit_code: number | null;
  readonly drafters: readonly string[];
  readonly result: unknown;
  readonly progress: { readonly stage: string } | null;
}

async function ask(path: string, method = 'GET', body?: object): Promise<Card> {
  const response = await fetch(`${server.url}/v1/drafters/${path}`, { method, headers, body: JSON.stringify(body) });
  return (await response.json()) as Card;
}

const MINUTES = 200_000;

async function ended(id: string): Promise<Card> {
  const deadline = performance.now() + MINUTES;
  while (performance.now() < deadline) {
    const card = await ask(`jobs/${id}`);
    if (card.status !== 'running') return card;
    await sleep(50);
  }
  throw new Error(`job ${id} did not end`);
}

it('diagnose gives what the command prints, while answers are served', async () => {
  const asked = { prompts, max_tokens: 32, weights: 'f32' };
  const { id } = await ask('dflash/diagnose', 'POST', asked);
  const child = childOf(server.pid);
  expect(niceness(child)).toBe(19);
  const answer = await fetch(`${server.url}/v1/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ prompt: 'once', max_tokens: 8, temperature: 0 }),
  });
  expect(answer.status).toBe(200);
  const card = await ended(id);
  expect(card.error).toBeNull();
  const file = join(temporary.path, 'prompts.jsonl');
  writeFileSync(file, prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(''));
  const printed = await run('diagnose', '--target', TESTBED_TARGET, '--drafter', TESTBED_DRAFTER, '--prompts', file);
  expect(card.result).toEqual(JSON.parse(printed.output));
  expect(card.exit_code).toBe(printed.code);
  expect(card.progress?.stage).toBe('Measuring');
});

it('validate and compare give reports of the drafters by their names', async () => {
  const asked = { prompts, limit: 2, max_tokens: 8, speed_prompts: 0 };
  const validated = await ended((await ask('dflash/validate', 'POST', asked)).id);
  expect(validated).toMatchObject({ status: 'succeeded', exit_code: 0, result: { complete: true } });
  const { speed_prompts, ...rest } = asked;
  const compared = await ended((await ask('compare', 'POST', { ...rest, drafters: ['ngram', 'dflash'] })).id);
  expect(compared).toMatchObject({ status: 'succeeded', result: { complete: true } });
  expect(JSON.stringify(compared.result)).toContain('"dflash"');
});

const json = (...path: readonly string[]) => JSON.parse(readFileSync(join(output, ...path), 'utf8')) as unknown;

it('validate leaves its files where it may, and export-hard reads them', async () => {
  const asked = { prompts, limit: 4, max_tokens: 24, speed_prompts: 0, out: 'validated' };
  const validated = await ended((await ask('dflash/validate', 'POST', asked)).id);
  expect(validated).toMatchObject({ status: 'succeeded', exit_code: 0 });
  expect(json('validated', 'report.json')).toEqual(validated.result);
  const wanted = { validation: 'validated', max_accepted: 256, min_target_probability: 0, out: 'hard/examples.jsonl' };
  const exported = await ended((await ask('export-hard', 'POST', wanted)).id);
  expect(exported).toMatchObject({ status: 'succeeded', exit_code: 0, error: null });
  const lines = readFileSync(join(output, 'hard', 'examples.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  expect(lines.length).toBeGreaterThan(0);
  expect(exported.result).toEqual(lines.map((line) => JSON.parse(line)));
});

it('record records the layers that the drafter taps', async () => {
  const asked = { prompts: prompts.slice(0, 2), max_tokens: 8, out: 'recording', no_last_hidden_state: true, precision: 'f32' };
  const card = await ended((await ask('dflash/record', 'POST', asked)).id);
  expect(card).toMatchObject({ status: 'succeeded', exit_code: 0, error: null, drafters: ['dflash'] });
  const drafters = await (await fetch(`${server.url}/v1/drafters`, { headers })).json();
  const { taps } = (drafters as { data: { taps: number[] }[] }).data[0]!;
  expect(card.result).toMatchObject({
    sequences: 2,
    manifest: { complete: true, conditions: { taps, lastHiddenState: false, precision: 'f32' } },
  });
  expect(json('recording', 'manifest.json')).toEqual((card.result as { manifest: unknown }).manifest);
});

it('watch measures the checkpoints that are there, and a second time only new ones', async () => {
  const asked = { prompts, limit: 2, max_tokens: 8, watch: ['v1'], out: 'watched', min_streak: 50 };
  const first = await ended((await ask('watch', 'POST', asked)).id);
  expect(first).toMatchObject({ status: 'succeeded', exit_code: 1, error: null, drafters: [] });
  expect(first.result).toMatchObject({ points: [{ run: 'v1', step: 100 }], gates: [{ passed: false }] });
  expect(json('watched', 'watch.json')).toEqual(first.result);
  cpSync(TESTBED_DRAFTER, join(runs, 'v1', 'step-200'), { recursive: true, dereference: true });
  const { min_streak: _, ...without } = asked;
  const second = await ended((await ask('watch', 'POST', without)).id);
  expect(second).toMatchObject({ exit_code: 0, result: { points: [{ step: 100 }, { step: 200 }] } });
});

it('a job that cannot be done says why', async () => {
  const asked = { prompts: prompts.slice(0, 2), max_tokens: 9, out: 'recording', precision: 'f16' };
  const card = await ended((await ask('dflash/record', 'POST', asked)).id);
  expect(card).toMatchObject({ status: 'failed', result: null, error: { message: expect.stringMatching(/recording/) } });
});

it('a cancelled job leaves no process, and neither does a server that stops', async () => {
  const first = await ask('dflash/diagnose', 'POST', {});
  const child = childOf(server.pid);
  expect(await ask(`jobs/${first.id}`, 'DELETE')).toMatchObject({ status: 'cancelled' });
  expect(isAlive(child)).toBe(false);
  await ask('dflash/diagnose', 'POST', {});
  const second = childOf(server.pid);
  server.signal('SIGTERM');
  expect(await server.exit()).toBe(0);
  expect(isAlive(second)).toBe(false);
});

function run(...args: string[]): Promise<{ code: number; output: string }> {
  const words = [BIN, ...args, '--max-tokens', '32', '--cache-dir', temporary.path, '--threads', '1', '--json'];
  return new Promise((done) => {
    execFile(process.execPath, words, { maxBuffer: 2 ** 26 }, (error, output) =>
      done({ code: Number(error?.code ?? 0), output }),
    );
  });
}

/** Fields of a process, from the state on. */
function stat(pid: string): string[] {
  return readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
}

/** The process of a job; compilers of TypeScript are children too. */
function childOf(parent: number): string {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const child = pids.find((pid) => {
    try {
      return stat(pid)[1] === `${parent}` && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('blockdraft.js');
    } catch {
      return false;
    }
  });
  if (child === undefined) throw new Error('the server has no job');
  return child;
}

function niceness(pid: string): number {
  return Number(stat(pid)[16]);
}

function isAlive(pid: string): boolean {
  try {
    return stat(pid)[0] !== 'Z';
  } catch {
    return false;
  }
}
