/** Statistics of reports against the reference cases that the same definitions have. */
import { describe, expect, it } from 'vitest';
import { logPartition, overlap } from '../../src/sampling/row-measures.ts';
import { forcedAccuracy } from '../../src/validate/report/forced-accuracy.ts';
import type { ForcedRun } from '../../src/validate/report/forced-walk.ts';
import { servedAcceptance } from '../../src/validate/report/served-acceptance.ts';
import acceptance from './fixtures/acceptance/golden.json' with { type: 'json' };
import metrics from './fixtures/speculators-metrics/golden.json' with { type: 'json' };

/** Of single precision. */
const DIGITS = 5;

describe('acceptance of hand-made traces', () => {
  it.each(acceptance.cases)('$name', ({ requests, num_spec_tokens: longest, expected }) => {
    const answers = (requests as number[][][]).map((steps) => ({
      firstTokens: 1,
      rounds: steps.map(([drafted, accepted, emitted]) => ({
        drafted: drafted!,
        accepted: accepted!,
        emitted: emitted ?? accepted! + 1,
        evaluated: Math.min(accepted! + 1, drafted!),
        slotsInside: drafted!,
      })),
    }));
    const report = servedAcceptance(answers, longest, 0);
    const close = (value: number | null, wanted: number | null, name: string) =>
      wanted === null ? expect(value, name).toBeNull() : expect(value, name).toBeCloseTo(wanted, 12);
    close(report.meanAcceptanceLength.value, expected.mean_acceptance_length, 'mean');
    close(report.macroMeanAcceptanceLength.value, expected.macro_mean_acceptance_length, 'macro');
    close(report.emittedPerStep.value, expected.emitted_per_step, 'emitted per step');
    close(report.completionPerVerify.value, expected.completion_per_verify, 'completion per verify');
    close(report.draftAcceptanceRate.value, expected.draft_acceptance_rate, 'rate');
    close(report.evaluatedRate.value, expected.evaluated_rate, 'evaluated');
    close(report.draftedShare.value, expected.drafted_share, 'drafted share');
    expect(report.tokens).toBe(expected.completion_tokens);
    expect(report.acceptanceHistogram).toEqual(expected.acceptance_histogram);
    for (let slot = 0; slot < longest; slot++) {
      close(report.perPosition[slot]!.value, expected.per_position[slot]!, `slot ${slot}`);
      close(report.perPositionProposed[slot]!.value, expected.per_position_proposed[slot]!, `proposed ${slot}`);
      close(report.conditionalProposed[slot]!.value, expected.conditional_proposed[slot]!, `conditional ${slot}`);
    }
  });
});

/** A block as an answer of its own: its labels up to where the mask ends, and what was predicted. */
function blockRun(predicted: readonly number[], labels: readonly number[], mask: readonly number[], first: number): ForcedRun {
  const slots = mask.slice(first).indexOf(0);
  const count = slots < 0 ? mask.length - first : slots;
  const draft = predicted.slice(first);
  return {
    tokens: [-1, ...labels.slice(first, first + count)],
    anchors: [{ draft, confidences: null, labelRanks: null, overlaps: null }],
  };
}

/** Figures by the names that speculators gives them. */
function named(runs: readonly ForcedRun[], firstSlot: number, slots: number) {
  const { accuracy, accuracyBySlot, expectedAcceptanceLength } = forcedAccuracy(runs, slots, 0);
  return {
    full_acc: accuracy.value,
    ...Object.fromEntries(accuracyBySlot.map(({ value }, slot) => [`position_${firstSlot + slot}_acc`, value])),
    eal: expectedAcceptanceLength.value,
  };
}

function argmax(row: readonly number[]): number {
  return row.indexOf(Math.max(...row));
}

describe('teacher-forced metrics of speculators', () => {
  it('are ours on a batch of a drafter', () => {
    const { pred, label, block_loss_mask: masks, anchor_valid: valid, metrics: expected } = metrics.batch;
    const runs = pred.flatMap((row, block) => (valid[block] === 1 ? [blockRun(row, label[block]!, masks[block]!, 1)] : []));
    const own = named(runs, 1, 7);
    expect(Object.keys(own)).toEqual(Object.keys(expected));
    for (const [name, value] of Object.entries(expected))
      expect(own[name as keyof typeof own], name).toBeCloseTo(value, DIGITS);
  });

  it.each(metrics.unit)(
    'are ours: $name',
    ({ block_size: size, loss_mask: mask, logits, targets, sample_from_anchor: fromAnchor, ...rest }) => {
      const first = fromAnchor ? 0 : 1;
      const blocks = Array.from({ length: logits.length / size }, (_, block) => [block * size, (block + 1) * size] as const);
      const runs = blocks.map(([begin, end]) =>
        blockRun(logits.slice(begin, end).map(argmax), targets.slice(begin, end).map(argmax), mask.slice(begin, end), first),
      );
      const own: Record<string, number | null> = named(runs, first, size - first);
      for (const [name, value] of Object.entries(rest.metrics)) expect(own[name], name).toBeCloseTo(value, DIGITS);
    },
  );

  it.each(metrics.unit)(
    'have our 1 − TV in their loss: $name',
    ({ block_size: size, loss_mask: mask, logits, targets, sample_from_anchor: fromAnchor, losses }) => {
      const wanted = losses.find(({ loss_fn: name }) => name === 'tv')!;
      const row = (values: readonly number[]) => {
        const own = Float32Array.from(values);
        return { logits: own, logPartition: logPartition(own), temperature: 1 };
      };
      let loss = 0;
      for (const [place, on] of mask.entries()) {
        const slot = place % size;
        const weight = fromAnchor ? Math.exp(-slot / wanted.gamma!) : slot === 0 ? 0 : Math.exp(-(slot - 1) / wanted.gamma!);
        loss += on * weight * (1 - overlap(row(logits[place]!), null, row(targets[place]!)));
      }
      expect(loss / (mask.reduce((sum, on) => sum + on, 0) + 1e-5)).toBeCloseTo(wanted.loss, DIGITS);
    },
  );
});
