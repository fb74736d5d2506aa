/** The verdict on every drafter of the testbed. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { diagnoseDrafter } from '../../src/validate/diagnose.ts';
import { RecordedTarget } from '../../src/validate/recorded-target.ts';
import { readPrompts } from '../../src/validate/recording/read-prompts.ts';
import { testRuntime } from '../support/runtime.ts';
import { MAX_TOKENS, TESTBED } from './testbed-probe.ts';

interface Variant {
  readonly variant: string;
  readonly folder: string;
  readonly fault: string;
  /** The fault is there, and costs nothing. */
  readonly healthy_looking: boolean;
}

const { variants } = JSON.parse(readFileSync(join(TESTBED, 'expected.json'), 'utf8')) as {
  readonly variants: readonly Variant[];
};
const A_LOADED_MACHINE_MS = 240_000;
/** What a diagnosis may take; of two cores it is half as long. It takes about 20 s. */
const MOST_CPU_SECONDS = 120;

let recorded: RecordedTarget;

beforeAll(async () => {
  recorded = await RecordedTarget.open({
    runtime: testRuntime(),
    target: join(TESTBED, 'target'),
    prompts: readPrompts(join(TESTBED, 'prompts.jsonl'), { limit: null, seed: 0 }),
    weights: 'f32',
    maxTokens: MAX_TOKENS,
    cacheDir: mkdtempSync(join(tmpdir(), 'testbed-')),
  });
  await recorded.forms();
}, A_LOADED_MACHINE_MS);

afterAll(async () => {
  await recorded[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

it.each(variants)(
  '$variant: $fault',
  async ({ folder, fault, healthy_looking }) => {
    const before = process.cpuUsage();
    const diagnosis = await diagnoseDrafter(recorded, { drafter: join(TESTBED, folder) });
    const { user, system } = process.cpuUsage(before);
    const faults = diagnosis.findings.map((finding) => finding.fault);
    if (fault === 'none' || healthy_looking) expect(faults).toEqual([]);
    else expect(faults[0]).toBe(fault);
    expect(diagnosis.healthy).toBe(faults.length === 0);
    expect((user + system) / 1e6).toBeLessThan(MOST_CPU_SECONDS);
  },
  A_LOADED_MACHINE_MS,
);
