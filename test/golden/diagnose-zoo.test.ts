/** The verdict on every drafter of the testbed. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { diagnose } from '../../src/validate/diagnose.ts';
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
const cacheDir = mkdtempSync(join(tmpdir(), 'testbed-'));
const prompts = readPrompts(join(TESTBED, 'prompts.jsonl'), { limit: null, seed: 0 });
const A_LOADED_MACHINE_MS = 240_000;

it.each(variants)(
  '$variant: $fault',
  async ({ folder, fault, healthy_looking }) => {
    const diagnosis = await diagnose({
      runtime: testRuntime(),
      target: join(TESTBED, 'target'),
      drafter: join(TESTBED, folder),
      prompts,
      weights: 'f32',
      maxTokens: MAX_TOKENS,
      cacheDir,
    });
    const faults = diagnosis.findings.map((finding) => finding.fault);
    if (fault === 'none' || healthy_looking) expect(faults).toEqual([]);
    else expect(faults[0]).toBe(fault);
    expect(diagnosis.healthy).toBe(faults.length === 0);
    expect(liveObjects()).toEqual({});
  },
  A_LOADED_MACHINE_MS,
);
