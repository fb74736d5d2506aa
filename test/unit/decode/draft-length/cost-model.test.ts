import { describe, expect, it } from 'vitest';
import { CostModel } from '../../../../src/decode/draft-length/cost-model.ts';

const POINTS = [
  { rows: 1, ms: 10 },
  { rows: 5, ms: 18 },
  { rows: 9, ms: 22 },
];

describe('the cost of a step', () => {
  it('is as measured at the points, straight between them and beyond the last', () => {
    const costs = new CostModel(POINTS, 2);
    expect([1, 3, 5, 7, 9, 13].map((rows) => costs.stepMs(rows, 1))).toEqual([10, 14, 18, 20, 22, 26]);
  });

  it('never falls with more rows, whatever was measured', () => {
    const costs = new CostModel([...POINTS, { rows: 12, ms: 15 }], 2);
    expect(costs.stepMs(12, 1)).toBe(22);
  });

  it('follows what is observed, for the number of sequences it was observed with', () => {
    const costs = new CostModel(POINTS, 2);
    for (let i = 0; i < 200; i++) costs.observeStep(5, 4, 36);
    expect(costs.stepMs(5, 4)).toBeCloseTo(36, 1);
    expect(costs.stepMs(1, 4)).toBeCloseTo(20, 1);
    // Nothing nearer is known of five sequences.
    expect(costs.stepMs(5, 5)).toBeCloseTo(36, 1);
  });

  it('is not thrown off by one run that took very long', () => {
    const costs = new CostModel(POINTS, 2);
    costs.observeStep(1, 1, 10_000);
    expect(costs.stepMs(1, 1)).toBeLessThan(12);
  });

  it('is the one value where one was measured', () => {
    expect(new CostModel([{ rows: 1, ms: 7 }], 2).stepMs(4, 1)).toBe(7);
  });
});

describe('the cost of a draft', () => {
  it('starts as measured and follows what is observed', () => {
    const costs = new CostModel(POINTS, 2);
    expect(costs.draftMs(1)).toBe(2);
    for (let i = 0; i < 200; i++) costs.observeDraft(3, 6);
    expect(costs.draftMs(3)).toBeCloseTo(6, 1);
    expect(costs.draftMs(4)).toBeCloseTo(6, 1);
  });
});
