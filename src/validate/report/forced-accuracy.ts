/** Teacher-forced figures of one drafter. */
import { type ForcedAnchor, LABEL_RANKS } from '../measure/answer-records.ts';
import type { Ratio } from '../statistics/estimate.ts';
import { type ConfidentSlot, calibration } from './calibration.ts';
import { type ForcedRun, prefixLength, rightSlots } from './forced-walk.ts';
import { Bootstrap, type Interval } from './interval.ts';
import type { Forced } from './report-schema.ts';

const COVERAGE = [1, 2, 4, 8, LABEL_RANKS];

export function forcedAccuracy(runs: readonly ForcedRun[], slots: number, seed: number): Forced {
  const bootstrap = new Bootstrap(runs.length, seed);
  const judged = runs.map((run) => run.anchors.map((anchor, i) => ({ anchor, right: rightSlots(run, i) })));
  type Judged = (typeof judged)[number][number];
  const ratio = (add: (judged: Judged, sums: { dividend: number; divisor: number }) => void): Interval =>
    bootstrap.ratio(
      judged.map((anchors): Ratio => {
        const sums = { dividend: 0, divisor: 0 };
        for (const entry of anchors) add(entry, sums);
        return sums;
      }),
    );
  const places = Array.from({ length: slots }, (_, slot) => slot);
  const atSlot = (count: (entry: Judged, slot: number) => number | null) =>
    places.map((slot) =>
      ratio((entry, sums) => {
        const value = count(entry, slot);
        if (value === null) return;
        sums.dividend += value;
        sums.divisor++;
      }),
    );
  const all = judged.flat();
  const overlapBySlot = atSlot(({ anchor }, slot) => anchor.overlaps?.[slot] ?? null);
  const hasOverlap = all.some(({ anchor }) => (anchor.overlaps?.length ?? 0) > 0);
  const hasRanks = all.some(({ anchor }) => anchor.labelRanks !== null);
  const confident = all.flatMap(({ anchor, right }) => confidentSlots(anchor, right));
  return {
    anchors: all.length,
    accuracy: ratio(({ right }, sums) => {
      sums.dividend += right.filter(Boolean).length;
      sums.divisor += right.length;
    }),
    accuracyBySlot: atSlot(({ right }, slot) => bit(right[slot])),
    conditionalBySlot: atSlot(({ right }, slot) => (prefixLength(right) >= slot ? bit(right[slot]) : null)),
    streak: ratio(({ right }, sums) => {
      sums.dividend += prefixLength(right);
      sums.divisor++;
    }),
    expectedAcceptanceLength: ratio(({ right }, sums) => {
      if (right.length === 0) return;
      sums.dividend += 1 + prefixLength(right);
      sums.divisor++;
    }),
    coverage: hasRanks
      ? COVERAGE.map((k) => ({
          k,
          bySlot: atSlot(({ anchor }, slot) => {
            const rank = anchor.labelRanks?.[slot];
            return rank === undefined ? null : bit(rank < k);
          }),
        }))
      : null,
    overlapBySlot: hasOverlap ? overlapBySlot : null,
    overlapAcceptanceLength: hasOverlap ? productLength(overlapBySlot) : null,
    calibration: confident.length === 0 ? null : calibration(confident),
  };
}

function bit(right: boolean | undefined): number | null {
  return right === undefined ? null : Number(right);
}

function confidentSlots({ confidences }: ForcedAnchor, right: readonly boolean[]): ConfidentSlot[] {
  if (confidences === null) return [];
  return right.map((correct, slot) => ({ confidence: confidences[slot] ?? 0, correct }));
}

/** 1 + Σ_k Π_{i≤k} of the values. */
function productLength(values: readonly Interval[]): number {
  let product = 1;
  let length = 1;
  for (const { value } of values) {
    product *= value ?? 0;
    length += product;
  }
  return length;
}
