/** `bench-serve` as it is used: it starts a server of its own, measures it and leaves a report. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readResult } from '../../src/bench/compare-results.ts';
import { runBenchServe } from '../../src/cli/bench-serve.ts';
import { benchServeCommand } from '../../src/cli/bench-serve-options.ts';
import { TemporaryFolder } from '../support/load-test-target.ts';
import { TESTBED_DRAFTER, TESTBED_TARGET } from '../support/testbed-engine.ts';
import { runCommand } from '../unit/cli/run-command.ts';

const PROMPTS = resolve(import.meta.dirname, '../golden/fixtures/testbed/prompts.jsonl');
const temporary = new TemporaryFolder();
afterAll(() => {
  process.exitCode = 0;
  return temporary[Symbol.asyncDispose]();
});

it('measures a server that it starts, and compares what it has saved', async () => {
  const folder = temporary.path;
  const measure = [
    '--dataset-path',
    PROMPTS,
    '--num-prompts',
    '8',
    '--max-concurrency',
    '1,2',
    '--repeats',
    '1',
    '--input-len',
    '0',
  ];
  const models = ['--target', TESTBED_TARGET, '--drafter', `dflash=${TESTBED_DRAFTER}`];
  const serve = ['--', '--cache-dir', folder, '--weights', 'f32', '--threads', '1', '--draft-tokens', '7'];
  const command = () => benchServeCommand().action(runBenchServe);
  const printed = await runCommand(
    command(),
    ...measure,
    ...models,
    '--draft-tokens',
    '2,7',
    '--save-result',
    '--result-dir',
    folder,
    ...serve,
  );
  expect(printed).toMatch(/^1 +dflash@7 +8 +0 /m);
  expect(process.exitCode).toBe(0);

  const file = join(folder, 'bench-serve.json');
  const result = readResult(file);
  expect(result).toMatchObject({ complete: true, lossless: { compared: 32, differing: [] }, errors: [] });
  expect(result.server.drafters).toContainEqual(expect.objectContaining({ name: 'dflash', length_policy: 'fixed' }));
  const length = (variant: string) =>
    result.points.find((point) => point.variant === variant)?.spec_decode_acceptance_length.value ?? 0;
  expect(length('dflash@2')).toBeGreaterThan(2);
  expect(length('dflash@2')).toBeLessThanOrEqual(3);
  expect(length('dflash@7')).toBeGreaterThan(3.5);
  expect(readFileSync(join(folder, 'bench-serve.html'), 'utf8')).toContain('What speculation gains');

  const compared = await runCommand(command(), '--compare', file, file);
  expect(compared).toMatch(/^dflash@7 .* 1\.00 .* no clear difference$/m);
});

it('says why its server did not start', async () => {
  await runCommand(benchServeCommand().action(runBenchServe), '--target', '/nowhere');
  expect(process.exitCode).toBe(2);
});
