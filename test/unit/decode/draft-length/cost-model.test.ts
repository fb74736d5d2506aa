import { describe, expect, it } from 'vitest';
import { CostModel } from '../../../../src/decode/draft-length/cost-model.ts';

const POINTS = [
  { rows: 1, ms: 10 },
  { rows: 5, ms: 18 },
  { rows: 9, ms: 22 },
];

const DRAFTS = [
  { rows: 1, ms: 2 },
  { rows: 5, ms: 4 },
];

describe('the cost of a step', () => {
  it('is as measured at the points, straight between them and beyond the last', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    for (const [i, ms] of [10, 14, 18, 20, 22, 26].entries())
      expect([1, 3, 5, 7, 9, 13].map((rows) => costs.stepMs(rows, 1))[i]).toBeCloseTo(ms, 9);
  });

  it('never falls with more rows: what was measured too long is not believed', () => {
    const costs = new CostModel([POINTS[0]!, { rows: 2, ms: 39 }, POINTS[1]!, POINTS[2]!], DRAFTS);
    for (const [rows, ms] of [
      [1, 10],
      [2, 18],
      [5, 18],
      [9, 22],
    ] as const) {
      expect(costs.stepMs(rows, 1)).toBeCloseTo(ms, 9);
    }
  });

  it('follows what is observed, for the number of sequences it was observed with', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    for (let i = 0; i < 200; i++) costs.observeStep(4, 4, 32);
    expect(costs.stepMs(4, 4)).toBeCloseTo(32, 1);
    // Nothing nearer is known of five sequences.
    expect(costs.stepMs(5, 5)).toBeCloseTo(36, 1);
    expect(new CostModel(POINTS, DRAFTS).stepMs(4, 4)).toBeCloseTo(16, 9);
  });

  it('learns the price of draft rows apart from that of plain ones', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    // Four plain rows take 16 ms as measured; each row beyond them 3 ms, where 1.5 ms was measured.
    for (let i = 0; i < 400; i++) costs.observeStep(i % 2 === 0 ? 4 : 8, 4, i % 2 === 0 ? 16 : 16 + 4 * 3);
    expect(costs.stepMs(4, 4)).toBeCloseTo(16, 0);
    expect(costs.stepMs(8, 4)).toBeCloseTo(28, 0);
    expect(costs.stepMs(6, 4) - costs.stepMs(4, 4)).toBeGreaterThan(5);
  });

  it('is not thrown off by one run that took very long', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    costs.observeStep(1, 1, 10_000);
    expect(costs.stepMs(1, 1)).toBeLessThan(12);
  });

  it('is the one value where one was measured', () => {
    expect(new CostModel([{ rows: 1, ms: 7 }], DRAFTS).stepMs(4, 1)).toBeCloseTo(7, 9);
  });
});

describe('the cost of a draft', () => {
  it('starts as measured, by tokens, and follows what is observed', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    for (const [i, ms] of [2, 3, 4].entries())
      expect([1, 3, 5].map((tokens) => costs.draftMs(tokens, 1))[i]).toBeCloseTo(ms, 9);
    for (let i = 0; i < 400; i++) costs.observeDraft(9, 3, 3, 12);
    expect(costs.draftMs(9, 3)).toBeCloseTo(12, 1);
    expect(costs.draftMs(9, 4)).toBeGreaterThan(10);
  });

  it('has rows that it takes in first, beyond one of each sequence', () => {
    const costs = new CostModel(POINTS, DRAFTS, 0.1);
    expect(costs.draftMs(5, 1)).toBeCloseTo(4, 9);
    expect(costs.draftMs(5, 1, 41)).toBeCloseTo(8, 9);
    // All that is beyond the least draft turns out to take twice as long.
    for (let i = 0; i < 400; i++) costs.observeDraft(i % 2 === 0 ? 1 : 5, 1, 1, i % 2 === 0 ? 2 : 6);
    expect(costs.draftMs(5, 1, 41)).toBeCloseTo(14, 0);
  });

  it('of several sequences has the rows of their anchors too, before any was observed', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    // By rows: 3 rows 2 ms and 7 rows 4 ms, so 24 rows for 8 sequences of a token each take 12.5 ms.
    expect(costs.draftMs(8, 8)).toBeCloseTo(12.5, 9);
  });
});
