/** Checkpoints of training runs, measured as they appear: what is measured again, and what is not mixed. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { CPU } from '../../src/onnx/device.ts';
import { readPrompts } from '../../src/validate/recording/read-prompts.ts';
import { type WatchOptions, watchRuns } from '../../src/validate/watch/watch.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { TEST_THREADS } from '../support/runtime.ts';
import { TESTBED_DRAFTER, TESTBED_TARGET } from '../support/testbed-engine.ts';

const PROMPTS = join(import.meta.dirname, 'fixtures', 'testbed', 'prompts.jsonl');
const temporary = new TemporaryFolder();
const run = join(temporary.path, 'run');
const out = join(temporary.path, 'watch');
const log = join(temporary.path, 'log.jsonl');

beforeEach(() => {
  for (const path of [run, out, log]) rmSync(path, { recursive: true, force: true });
  mkdirSync(run);
});

afterAll(() => temporary[Symbol.asyncDispose]());

function write(step: number): string {
  const folder = join(run, `step-${step}`);
  cpSync(TESTBED_DRAFTER, folder, { recursive: true });
  return folder;
}

async function watch(changes: Partial<WatchOptions> = {}) {
  const measured: number[] = [];
  const complaints: string[] = [];
  const result = await watchRuns({
    target: TESTBED_TARGET,
    prompts: readPrompts(PROMPTS, { limit: 3, seed: 0 }),
    weights: 'f32',
    device: CPU,
    threads: TEST_THREADS,
    maxContext: null,
    cacheDir: join(temporary.path, 'weights'),
    concurrency: 3,
    maxTokens: 12,
    temperature: 0,
    seed: 0,
    runs: [{ name: 'r', path: run }],
    logs: [],
    out,
    once: true,
    pollSeconds: 1,
    thresholds: {},
    onCheckpoint: (_, { step }) => measured.push(step),
    onMeasured: () => undefined,
    onComplaint: (complaint) => complaints.push(complaint),
    ...changes,
  });
  return { ...result, measured, complaints };
}

describe('a checkpoint', () => {
  it('is measured once', async () => {
    write(200);
    write(100);
    const first = await watch();
    expect(first.measured).toEqual([100, 200]);
    expect(first.watch.points.map(({ step }) => step)).toEqual([100, 200]);
    expect(first.watch.points[0]?.acceptanceLength).toEqual(first.watch.points[1]?.acceptanceLength);
    write(300);
    const second = await watch();
    expect([second.measured, second.watch.points.length]).toEqual([[300], 3]);
    expect(JSON.parse(readFileSync(join(out, 'watch.json'), 'utf8'))).toEqual(second.watch);
    // A trainer keeps the last few only.
    rmSync(join(run, 'step-100'), { recursive: true });
    const third = await watch();
    expect([third.measured, third.watch.points.length]).toEqual([[], 3]);
  });

  it('is measured without prompts that fill the context, and says which', async () => {
    write(100);
    const endless = { id: 'endless', category: 'x', messages: [{ role: 'user', content: 'once more '.repeat(100) }] };
    const prompts = [...readPrompts(PROMPTS, { limit: 2, seed: 0 }), endless];
    const { watch: points } = await watch({ prompts, maxContext: 128 });
    expect(points.points.map((point) => [point.prompts.length, point.tooLong])).toEqual([[2, ['endless']]]);
  });

  it('is measured again when it was written again', async () => {
    const folder = write(100);
    const before = await watch();
    utimesSync(join(folder, 'model.safetensors'), 1, 1);
    const { measured, watch: after } = await watch();
    expect(measured).toEqual([100]);
    expect(after.points.map(({ stamp }) => stamp)).not.toEqual(before.watch.points.map(({ stamp }) => stamp));
    expect((await watch()).measured).toEqual([]);
  });

  it('of another folder is no point of a run of the same name', async () => {
    write(100);
    await watch();
    const other = join(temporary.path, 'other');
    mkdirSync(other);
    expect((await watch({ runs: [{ name: 'r', path: other }] })).watch.points).toEqual([]);
  });

  it('that cannot be measured is passed over, and its run said to be unmeasured until there is a newer one', async () => {
    write(100);
    const broken = write(200);
    const config = join(broken, 'config.json');
    writeFileSync(config, readFileSync(config, 'utf8').replace(/"target_layer_ids"/, '"other_layer_ids"'));
    const { unmeasured, complaints, watch: points } = await watch();
    expect(unmeasured).toEqual(['r']);
    expect(complaints).toEqual([expect.stringMatching(/step-200 is passed over: /)]);
    expect(points.points.map(({ step }) => step)).toEqual([100]);
    write(300);
    expect((await watch()).unmeasured).toEqual([]);
  });
});

it('a run without checkpoints is unmeasured', async () => {
  expect(await watch({ thresholds: { minStreak: 0 } })).toMatchObject({
    unmeasured: ['r'],
    watch: { gates: [{ run: 'r', step: null, passed: false }] },
  });
});

describe('earlier points', () => {
  it('are not taken for those of other models, prompts or settings', async () => {
    write(100);
    await watch();
    const target = join(temporary.path, 'target');
    cpSync(TESTBED_TARGET, target, { recursive: true, dereference: true });
    appendFileSync(join(target, 'config.json'), '\n');
    const prompts = readPrompts(PROMPTS, { limit: 3, seed: 0 });
    const reworded = prompts.map((prompt) => ({ ...prompt, messages: [{ role: 'user', content: 'x' }] }));
    for (const change of [{ target }, { prompts: reworded }, { maxTokens: 13 }, { maxContext: 100 }]) {
      await expect(watch(change)).rejects.toThrow(/same target, prompts and settings/);
    }
    writeFileSync(join(out, 'watch.json'), '{"format"');
    await expect(watch()).rejects.toThrow(/same target, prompts and settings/);
  });
});

it('a training log that is not there, or has a line that is none, costs no point', async () => {
  write(100);
  const logs = [{ name: 'r', path: log }];
  const without = await watch({ logs });
  expect(without.watch.points).toHaveLength(1);
  expect(without.complaints).toEqual([expect.stringMatching(/Cannot read the training log/)]);
  writeFileSync(log, 'epoch 1\n{"step": 90, "loss": NaN, "streak": 1.5}\n');
  write(200);
  write(300);
  const { watch: result, complaints } = await watch({ logs });
  expect(result.points).toHaveLength(3);
  expect(result.logged).toEqual([{ run: 'r', step: 90, accuracy: null, streak: 1.5, loss: null }]);
  expect(complaints).toEqual([expect.stringMatching(/in line 1;/)]);
});

describe('validate --watch --once', () => {
  const BIN = join(import.meta.dirname, '../../bin/blockdraft.js');

  function validate(...words: readonly string[]) {
    const given = `validate --target ${TESTBED_TARGET} --watch r=${run} --once --limit 2 --max-tokens 8 --weights f32 --threads 1`;
    const cache = ['--cache-dir', join(temporary.path, 'weights')];
    const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...given.split(' '), ...cache, ...words], {
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  }

  it('ends by what came of the gates, with --json as watch.json has it', { timeout: 120_000 }, () => {
    expect(validate()).toMatchObject({ status: 2, stderr: expect.stringContaining('newest checkpoint of r could not') });
    write(100);
    const { status, stdout } = validate('--out', out, '--json', '--min-acceptance-length', '1');
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(join(out, 'watch.json'), 'utf8')));
    const failed = validate('--out', out, '--min-streak', '50');
    expect(failed).toMatchObject({ status: 1, stdout: expect.stringContaining('FAILED  r at step 100: minStreak 50') });
  });
});
