/** Faults that no drafter of the testbed has, made from its healthy one without training. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { diagnose, diagnoseDrafter } from '../../src/validate/diagnose.ts';
import type { Diagnosis } from '../../src/validate/diagnosis.ts';
import { RecordedTarget } from '../../src/validate/recorded-target.ts';
import { readPrompts } from '../../src/validate/recording/read-prompts.ts';
import { testRuntime } from '../support/runtime.ts';
import { VariedDrafter } from '../support/vary-drafter.ts';
import { TESTBED } from './testbed-probe.ts';

const root = mkdtempSync(join(tmpdir(), 'blockdraft-varied-'));
afterAll(() => rmSync(root, { recursive: true }));
const A_LOADED_MACHINE_MS = 240_000;

const common = {
  runtime: testRuntime(),
  target: join(TESTBED, 'target'),
  prompts: readPrompts(join(TESTBED, 'prompts.jsonl'), { limit: 32, seed: 0 }),
  maxTokens: 40,
  cacheDir: root,
};
let recorded: RecordedTarget;

beforeAll(async () => {
  recorded = await RecordedTarget.open({ ...common, weights: 'f32' });
  await recorded.forms();
}, A_LOADED_MACHINE_MS);

afterAll(async () => {
  await recorded[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

function varied(change: (drafter: VariedDrafter) => void): string {
  const drafter = new VariedDrafter(join(TESTBED, 'drafter'));
  change(drafter);
  return drafter.write(mkdtempSync(join(root, 'drafter-')));
}

function diagnosisOf(change: (drafter: VariedDrafter) => void): Promise<Diagnosis> {
  return diagnoseDrafter(recorded, { drafter: varied(change) });
}

it.each<[string, (drafter: VariedDrafter) => void, string, RegExp]>([
  ['columns of two taps swapped', (d) => d.arrangeTaps([4, 1, 2, 3, 0]), 'layer-ids-order', /to \[5, \d, \d, \d, 0\]/],
  ['declared with blocks of 5', (d) => (d.config['block_size'] = 5), 'block-size', /set block_size to 8/],
  ['columns of a tap lost', (d) => d.arrangeTaps([0, 1, 2, 3, null]), 'tap-unseen', /tap 4 \(layer 5\) were lost/],
  [
    'norms saved as differences from one',
    (d) => {
      for (const name of d.tensorNames) if (/norm\.weight$/.test(name)) d.map(name, (weight) => weight - 1);
    },
    'norm-offset',
    /add 1 to the weights of all norms/,
  ],
])(
  '%s',
  async (_, change, fault, advice) => {
    const { findings } = await diagnosisOf(change);
    expect(findings[0]).toMatchObject({ fault, advice: expect.stringMatching(advice) });
  },
  A_LOADED_MACHINE_MS,
);

it(
  'weights that 16-bit floats cannot hold are noted, and cost nothing as they are',
  async () => {
    // The norm behind fc takes the factor out again.
    const { findings, notes } = await diagnosisOf((drafter) => drafter.map('fc.weight', (weight) => weight * 3e5));
    expect(findings).toEqual([]);
    expect(notes.find(({ note }) => /weights in 16-bit floats/.test(note))?.evidence).toMatch(/fc\.weight/);
  },
  A_LOADED_MACHINE_MS,
);

it(
  "speculators' layout with a head of its own over a part of the vocabulary is healthy, in int8 too",
  async () => {
    const drafter = varied((drafter) => {
      const kept = Array.from({ length: 1024 }, (_, id) => id).filter((id) => id % 43 !== 7);
      const head = new VariedDrafter(join(TESTBED, 'target')).bits('model.embed_tokens.weight').values;
      const rows = Uint16Array.from(kept.flatMap((id) => [...head.subarray(id * 128, (id + 1) * 128)]));
      drafter.add('lm_head.weight', 'BF16', [kept.length, 128], new Uint8Array(rows.buffer));
      const offsets = BigInt64Array.from(kept, (id, row) => BigInt(id - row));
      drafter.add('d2t', 'I64', [kept.length], new Uint8Array(offsets.buffer));
      drafter.add(
        't2d',
        'BOOL',
        [1024],
        Uint8Array.from({ length: 1024 }, (_, id) => Number(kept.includes(id))),
      );
      drafter.declareAsSpeculators({ draft_vocab_size: kept.length });
    });
    const { findings } = await diagnose({ ...common, drafter, weights: 'int8' });
    expect(findings).toEqual([]);
  },
  A_LOADED_MACHINE_MS,
);
