/**
 * Faults of training that cannot be made without training, seen from the other side: a drafter that was trained under one
 * assumption and is served under another is the healthy one, served under what it was not trained under.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { evaluateAssumption } from '../../src/validate/evidence/evaluate-assumption.ts';
import { searchCounterfactuals } from '../../src/validate/evidence/search-counterfactuals.ts';
import { type Assumption, declaredAssumption, layerTap } from '../../src/validate/probe/assumption.ts';
import type { DrafterProbe } from '../../src/validate/probe/drafter-probe.ts';
import { openTestbed, type Testbed } from './testbed-probe.ts';

const PROMPTS = 32;
const SCREENED = 10;
const A_LOADED_MACHINE_MS = 240_000;

let testbed: Testbed;
let healthy: DrafterProbe;

beforeAll(async () => {
  testbed = await openTestbed();
  healthy = await testbed.openProbe('drafter');
}, A_LOADED_MACHINE_MS);

afterAll(async () => {
  healthy[Symbol.dispose]();
  await testbed[Symbol.asyncDispose]();
  expect(liveObjects()).toEqual({});
});

/** Faults and names of what helps a drafter that is served under other facts than its own. */
async function helped(change: (own: Assumption) => Partial<Assumption>, probe = healthy) {
  const own = declaredAssumption(healthy.config, testbed.layers);
  const declared = { ...own, ...change(own) };
  // Evenly from all categories, as these follow one another.
  const sequences = testbed.sequences.filter((_, i) => i % 5 < 2).slice(0, PROMPTS);
  const { changes } = await searchCounterfactuals({
    probe,
    sequences,
    screening: sequences.filter((_, i) => i % 3 === 0).slice(0, SCREENED),
    declared,
    base: await evaluateAssumption(probe, sequences, declared, 0),
    facts: { targetLayers: testbed.layers, targetRope: own.rope, maskCandidates: [], tokenName: String },
  });
  return changes.map(({ outcome: { counterfactual } }) => `${counterfactual.fault}: ${counterfactual.name}`);
}

/** The drafter as one whose slots learned the token `by` places further on. */
function withLabelsShifted(by: number): DrafterProbe {
  return new Proxy(healthy, {
    get: (probe, key) =>
      key === 'run'
        ? async (...words: Parameters<DrafterProbe['run']>) => {
            const predictions = await probe.run(...words);
            const { slots, ids } = predictions;
            const moved = Int32Array.from(ids, (_, at) => {
              const slot = (at % slots) + by;
              return slot < 0 || slot >= slots ? -1 : (ids[at + by] as number);
            });
            return { ...predictions, ids: moved };
          }
        : Reflect.get(probe, key, probe),
  });
}

it(
  'a drafter served as it was trained is helped by nothing',
  async () => {
    expect(await helped(() => ({}))).toEqual([]);
  },
  A_LOADED_MACHINE_MS,
);

it.each<[string, (own: Assumption) => Partial<Assumption>, string[]]>([
  ['numbered its blocks one higher', () => ({ blockShift: -1 }), ['position-shift: block positions +1']],
  ['numbered its blocks two lower', () => ({ blockShift: 2 }), ['position-shift: block positions -2']],
  ['had another rotary base', ({ rope }) => ({ rope: { ...rope, theta: 1e6 } }), ["rope: target's rotary base"]],
  [
    'had no window',
    ({ attention }) => ({ attention: attention.map((layer) => ({ ...layer, window: 12 })) }),
    ['sliding-window: sliding window ignored'],
  ],
  [
    'numbered layers and positions otherwise, both',
    ({ taps }) => ({ blockShift: -1, taps: taps.map((tap) => (tap.kind === 'layer' ? layerTap(tap.layer + 1) : tap)) }),
    ['position-shift: block positions +1', 'layer-ids-off-by-one: taps -1 [0, 2, 3, 4, 5]'],
  ],
])(
  'training that %s is found out',
  async (_, change, expected) => {
    expect(await helped(change)).toEqual(expected);
  },
  A_LOADED_MACHINE_MS,
);

it.each([
  [1, 'label-shift: labels +1'],
  [-1, 'label-shift: labels -1'],
])(
  'labels shifted by %i are found out',
  async (by, expected) => {
    // A slot is lost to the shift, which a longer block may bring back: what comes second is of this wrapping.
    expect((await helped(() => ({}), withLabelsShifted(by)))[0]).toBe(expected);
  },
  A_LOADED_MACHINE_MS,
);
