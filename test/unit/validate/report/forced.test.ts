import { describe, expect, it } from 'vitest';
import { calibration } from '../../../../src/validate/report/calibration.ts';
import { consistency, lossless, pairAnswers } from '../../../../src/validate/report/consistency.ts';
import { forcedAccuracy } from '../../../../src/validate/report/forced-accuracy.ts';
import { forcedRun, walk } from '../../../../src/validate/report/forced-walk.ts';
import { anchors, forced, round, served } from './measured-answers.ts';

/** Tokens 1 to 6; the drafts behind each of the first five. */
const DRAFTS = [
  [2, 3, 0],
  [3, 4, 5],
  [4, 5, 6],
  [0, 0, 0],
  [6, 7, 8],
];
const ANSWER = forced({ anchors: { d: anchors(DRAFTS) } });

describe('teacher forcing', () => {
  it('counts slots inside the answer only', () => {
    const {
      accuracyBySlot,
      conditionalBySlot,
      streak,
      accuracy,
      anchors: count,
    } = forcedAccuracy([forcedRun(ANSWER, 'd')], 3, 0);
    expect(count).toBe(5);
    expect(accuracyBySlot.map(({ value }) => value)).toEqual([4 / 5, 3 / 4, 2 / 3]);
    expect(conditionalBySlot.map(({ value }) => value)).toEqual([4 / 5, 3 / 3, 2 / 3]);
    expect(streak.value).toBeCloseTo((2 + 3 + 3 + 0 + 1) / 5, 12);
    expect(accuracy.value).toBeCloseTo(9 / 12, 12);
  });

  it('finds labels among the first k, and multiplies overlaps along a draft', () => {
    const own = anchors([[2, 3]]).map((anchor) => ({ ...anchor, labelRanks: [1, 4], overlaps: [0.5, 0.4] }));
    const { coverage, overlapBySlot, overlapAcceptanceLength } = forcedAccuracy([{ tokens: [1, 2, 3], anchors: own }], 2, 0);
    expect(coverage?.map(({ k, bySlot }) => [k, ...bySlot.map(({ value }) => value)])).toEqual([
      [1, 0, 0],
      [2, 1, 0],
      [4, 1, 0],
      [8, 1, 1],
      [16, 1, 1],
    ]);
    expect(overlapBySlot?.map(({ value }) => value)).toEqual([0.5, 0.4]);
    expect(overlapAcceptanceLength).toBeCloseTo(1 + 0.5 + 0.2, 12);
  });

  it('walks from anchor to anchor as serving does', () => {
    expect(walk(forcedRun(ANSWER, 'd'))).toEqual([
      { anchor: 0, accepted: 2, emitted: 3, inside: 3 },
      { anchor: 3, accepted: 0, emitted: 1, inside: 2 },
      { anchor: 4, accepted: 1, emitted: 1, inside: 1 },
    ]);
    expect(walk(forcedRun(ANSWER, 'd'), 1).map(({ emitted }) => emitted)).toEqual([2, 2, 1]);
  });
});

describe('serving next to teacher forcing', () => {
  const rounds = [
    round({ position: 10, draft: [2, 3, 0], accepted: 2 }),
    round({ position: 13, draft: [0, 0, 0], accepted: 0 }),
    round({ position: 14, draft: [6, 7, 8], accepted: 1, evaluated: 1, emitted: 1 }),
  ];

  it('has no gap where serving is what teacher forcing predicts', () => {
    const result = consistency(pairAnswers([served({ rounds })], [ANSWER]), 'd', 3, 0);
    expect(result.gap.value).toBe(0);
    expect(result.sameDrafts).toBe(1);
    expect(result.servedBySlot).toEqual(result.forcedBySlot);
  });

  it('shows a drafter that says something else when it is served', () => {
    const other = [round({ position: 10, draft: [9, 9, 9], accepted: 0 }), ...rounds];
    const result = consistency(pairAnswers([served({ rounds: other })], [ANSWER]), 'd', 3, 0);
    expect(result.gap.value).toBeLessThan(0);
    expect(result.sameDrafts).toBe(3 / 4);
  });

  it('names the answers that differ and where', () => {
    const pairs = pairAnswers([served(), served({ id: 'b', tokens: [1, 2, 4] })], [forced(), forced({ id: 'b' })]);
    expect(lossless(pairs)).toEqual({ compared: 2, differing: [{ id: 'b', temperature: 0, position: 2 }] });
  });

  it('finds an answer that ends early', () => {
    const pairs = pairAnswers([served({ tokens: [1, 2] })], [forced()]);
    expect(lossless(pairs).differing).toEqual([{ id: 'a', temperature: 0, position: 2 }]);
  });
});

describe('calibration', () => {
  it('weighs the error of each bin by its slots', () => {
    const slots = [
      ...Array.from({ length: 6 }, (_, i) => ({ confidence: 0.95, correct: i < 3 })),
      ...Array.from({ length: 4 }, (_, i) => ({ confidence: 0.25, correct: i < 1 })),
    ];
    const { expectedCalibrationError, overconfidence, bins } = calibration(slots);
    expect(expectedCalibrationError).toBeCloseTo(0.6 * 0.45, 12);
    expect(overconfidence).toBeCloseTo(0.6 * 0.45, 12);
    expect(bins.filter(({ slots: count }) => count > 0).map(({ from, accuracy }) => [from, accuracy])).toEqual([
      [0.2, 0.25],
      [0.9, 0.5],
    ]);
  });

  it('puts certainty into the last bin', () => {
    expect(calibration([{ confidence: 1, correct: true }]).bins[9]?.slots).toBe(1);
  });
});
