/** The probe against the measurements of a PyTorch implementation. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/checkpoint.ts';
import {
  type Acceptance,
  type LabelAt,
  ownLabels,
  pooledAcceptance,
  sequenceAcceptance,
} from '../../src/validate/evidence/acceptance-walk.ts';
import { checkWeights } from '../../src/validate/evidence/weight-checks.ts';
import { type Assumption, declaredAssumption, layerTap } from '../../src/validate/probe/assumption.ts';
import type { DrafterProbe } from '../../src/validate/probe/drafter-probe.ts';
import type { RecordedSequence } from '../../src/validate/recording/recorded-sequence.ts';
import { openTestbed, TESTBED, type Testbed } from './testbed-probe.ts';

interface Figures {
  readonly tau: number;
  readonly cycles: number;
  readonly forced_tau: number;
  readonly forced_tau_intermediate: number;
  readonly acceptance_by_position: readonly number[];
  readonly forced_accuracy: readonly number[];
  readonly forced_accuracy_intermediate: readonly number[];
}

interface Serving {
  readonly inclusive?: boolean;
  readonly causal?: boolean;
  readonly shift?: number;
  readonly zero_tap?: number;
  readonly mask?: number;
  readonly ids?: readonly number[];
  readonly labels?: 'lens';
}

interface Variant {
  readonly variant: string;
  readonly folder: string;
  readonly as_served: Figures;
  readonly matching: Figures | null;
  readonly matching_serving: Serving | null;
  readonly fc_block_norms: readonly number[];
  /** Tokens per round, forced tau and accuracy of slot 1, by serving option. */
  readonly probes: Readonly<Record<string, readonly [number, number, number]>>;
}

const expected = JSON.parse(readFileSync(join(TESTBED, 'expected.json'), 'utf8')) as {
  readonly golden: readonly { readonly id: string; readonly greedy_ids: readonly number[] }[];
  readonly variants: readonly Variant[];
};
/** Layer whose output some drafters were taught by. */
const INNER_LAYER = 5;
/**
 * Both sides compute in float32 with other kernels: a few of 31,000 slots whose two best logits are nearly equal may fall
 * either way.
 */
const TAU_TOLERANCE = 0.004;
const SHARE_TOLERANCE = 0.0015;

let testbed: Testbed;
let innerChoices: readonly Int32Array[];
beforeAll(async () => {
  testbed = await openTestbed();
  const choices: Int32Array[] = [];
  for (const { layers } of testbed.sequences) choices.push(await testbed.head.choose(layers[INNER_LAYER] as Float32Array));
  innerChoices = choices;
});
afterAll(() => testbed[Symbol.asyncDispose]());

function under(serving: Serving, base: Assumption): Assumption {
  return {
    ...base,
    ...(serving.inclusive === true ? { contextEdge: 1 } : {}),
    ...(serving.causal === undefined
      ? {}
      : { attention: base.attention.map((layer) => ({ ...layer, causal: serving.causal as boolean })) }),
    ...(serving.shift === undefined ? {} : { blockShift: serving.shift }),
    ...(serving.mask === undefined ? {} : { maskTokenId: serving.mask }),
    ...(serving.ids === undefined ? {} : { taps: serving.ids.map(layerTap) }),
    ...(serving.zero_tap === undefined ? {} : { taps: base.taps.with(serving.zero_tap, { kind: 'zero' }) }),
  };
}

/** The serving that a probe of the reference stands for. */
function probed(name: string, base: Assumption): Assumption {
  const ids = base.taps.map((tap) => (tap.kind === 'layer' ? tap.layer : -1));
  const number = Number(name.split('_').at(-1));
  if (name === 'inclusive') return under({ inclusive: true }, base);
  if (name === 'causal') return under({ causal: true }, base);
  if (name === 'bidirectional') return under({ causal: false }, base);
  if (name.startsWith('shift')) return under({ shift: Number(name.slice('shift'.length)) }, base);
  if (name.startsWith('zero_tap')) return under({ zero_tap: number }, base);
  if (name.startsWith('mask')) return under({ mask: number }, base);
  if (name === 'ids_sorted') return under({ ids: [...ids].sort((a, b) => a - b) }, base);
  if (name.startsWith('ids')) return under({ ids: ids.map((id) => id + Number(name.slice('ids'.length))) }, base);
  if (name === 'served') return base;
  throw new Error(`The reference has a probe ${name} that is not known here`);
}

async function acceptance(
  probe: DrafterProbe,
  sequences: readonly RecordedSequence[],
  assumption: Assumption,
): Promise<{ readonly own: Acceptance; readonly inner: Acceptance }> {
  const own = [];
  const inner = [];
  for (const sequence of sequences) {
    const predictions = await probe.run(sequence, assumption);
    const choices = innerChoices[testbed.sequences.indexOf(sequence)] as Int32Array;
    const { answerStart, tokens } = sequence;
    const innerLabels: LabelAt = (offset) =>
      answerStart + offset < tokens.length ? choices[answerStart + offset - 1] : undefined;
    own.push(sequenceAcceptance(predictions, ownLabels(sequence)));
    inner.push(sequenceAcceptance(predictions, innerLabels));
  }
  return { own: pooledAcceptance(own), inner: pooledAcceptance(inner) };
}

function expectShares(got: readonly number[], wanted: readonly number[]): void {
  for (const [slot, share] of wanted.entries()) expect(Math.abs((got[slot] ?? 0) - share)).toBeLessThan(SHARE_TOLERANCE);
}

function expectFigures(served: Acceptance, forced: Acceptance, inner: Acceptance, wanted: Figures): void {
  expect(Math.abs(served.servedTau - wanted.tau)).toBeLessThan(TAU_TOLERANCE * wanted.tau);
  expectShares(served.acceptance, wanted.acceptance_by_position);
  expect(Math.abs(forced.forcedTau - wanted.forced_tau)).toBeLessThan(TAU_TOLERANCE);
  expectShares(forced.accuracy, wanted.forced_accuracy);
  expect(Math.abs(inner.forcedTau - wanted.forced_tau_intermediate)).toBeLessThan(TAU_TOLERANCE);
  expectShares(inner.accuracy, wanted.forced_accuracy_intermediate);
}

it("records the target's own answers", () => {
  for (const { id, greedy_ids } of expected.golden) {
    const { tokens, answerStart } = testbed.sequences.find((sequence) => sequence.id === id) as RecordedSequence;
    expect(tokens.slice(answerStart, answerStart + greedy_ids.length)).toEqual(greedy_ids);
  }
});

describe.each(expected.variants)('$variant', (variant) => {
  let probe: DrafterProbe;
  let declared: Assumption;
  beforeAll(async () => {
    probe = await testbed.openProbe(variant.folder);
    declared = declaredAssumption(probe.config, testbed.layers);
  });
  afterAll(() => probe[Symbol.dispose]());

  it('is accepted as it was measured', async () => {
    const { own, inner } = await acceptance(probe, testbed.sequences, declared);
    expectFigures(own, own, inner, variant.as_served);
  });

  it.skipIf(variant.matching === null)('is accepted under the serving that matches it', async () => {
    const serving = variant.matching_serving as Serving;
    const { own, inner } = await acceptance(probe, testbed.sequences, under(serving, declared));
    expectFigures(serving.labels === 'lens' ? inner : own, own, inner, variant.matching as Figures);
  });

  it('answers blind probes as it was measured', async () => {
    const byCategory = new Map<string, number>();
    const few = testbed.sequences.filter(({ category }) => {
      const count = (byCategory.get(category) ?? 0) + 1;
      byCategory.set(category, count);
      return count <= 2;
    });
    for (const [name, [tau, forcedTau, firstSlot]] of Object.entries(variant.probes)) {
      const { own } = await acceptance(probe, few, probed(name, declared));
      expect(Math.abs(own.servedTau - tau) / tau, name).toBeLessThan(0.01);
      expect(Math.abs(own.forcedTau - forcedTau), name).toBeLessThan(0.01);
      expect(Math.abs((own.accuracy[0] ?? 0) - firstSlot), name).toBeLessThan(0.003);
    }
  });

  it('has the norms that were measured', async () => {
    const { fcNorms, notFinite } = await checkWeights(await openCheckpoint(join(TESTBED, variant.folder)), 5);
    for (const [tap, norm] of variant.fc_block_norms.entries()) expect(fcNorms[tap]).toBeCloseTo(norm, 2);
    expect(notFinite).toEqual([]);
  });
});
