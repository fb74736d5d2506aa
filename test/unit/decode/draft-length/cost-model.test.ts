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

  it('is as measured for several sequences, and between two such numbers for rows beyond one of each', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    costs.measured(
      2,
      [
        { rows: 2, ms: 20 },
        { rows: 4, ms: 24 },
      ],
      DRAFTS,
    );
    costs.measured(
      4,
      [
        { rows: 4, ms: 40 },
        { rows: 8, ms: 60 },
      ],
      DRAFTS,
    );
    expect([2, 3, 4, 6].map((rows) => costs.stepMs(rows, 2))).toEqual([20, 22, 24, 28]);
    expect([4, 6].map((rows) => costs.stepMs(rows, 4))).toEqual([40, 50]);
    // Three: half way between 20 and 40, and between 24 and 50 with two rows more.
    expect([3, 5].map((rows) => costs.stepMs(rows, 3))).toEqual([30, 37]);
    // More than were measured are as rows of those.
    expect(costs.stepMs(8, 6)).toBe(60);
    expect(costs.stepMs(1, 1)).toBe(10);
  });

  it('keeps what rows add in proportion to what is observed', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    // A machine that is twice as busy now and then says nothing of rows: those were measured.
    for (let i = 0; i < 400; i++) costs.observeStep(1, 1, i % 2 === 0 ? 10 : 20);
    expect(costs.stepMs(5, 1) / costs.stepMs(1, 1)).toBeCloseTo(1.8, 9);
    expect(costs.stepMs(1, 1)).toBeGreaterThan(13);
    expect(costs.stepMs(1, 1)).toBeLessThan(17);
  });

  it('of steps with draft tokens is more where they are seen to take longer than their rows tell', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    // One row takes 10 ms and five 18 ms as measured; with drafts all is a tenth slower, and the machine half as fast besides.
    for (let i = 0; i < 3000; i++) costs.observeStep(i % 2 === 0 ? 1 : 5, 1, i % 2 === 0 ? 20 : 2 * 1.1 * 18);
    expect(costs.stepMs(1, 1)).toBeCloseTo(20, 0);
    expect(costs.stepMs(5, 1)).toBeCloseTo(39.6, 0);
    expect(costs.stepMs(2, 1)).toBeCloseTo(1.1 * 24, 0);
  });

  it('does not take a machine that becomes busy for what drafts do', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    for (let i = 0; i < 100; i++) costs.observeStep(5, 1, 18);
    for (let i = 0; i < 200; i++) costs.observeStep(5, 1, 36);
    expect(costs.stepMs(5, 1) / costs.stepMs(1, 1)).toBeCloseTo(1.8, 0);
    expect(costs.stepMs(5, 1) / costs.stepMs(1, 1)).toBeLessThan(1.8 * 1.1);
  });

  it('does not mix what was observed before a measurement with it', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    for (let i = 0; i < 400; i++) costs.observeStep(2, 2, 60);
    for (let i = 0; i < 400; i++) costs.observeStep(1, 1, 11);
    costs.measured(2, [{ rows: 2, ms: 30 }], DRAFTS);
    expect(costs.stepMs(2, 2)).toBeCloseTo(33, 1);
  });

  it('is not thrown off by one run that took very long', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    costs.observeStep(1, 1, 10_000);
    expect(costs.stepMs(1, 1)).toBeLessThan(12.5);
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
    for (let i = 0; i < 400; i++) costs.observeDraft(1, 1, 1, 4);
    expect(costs.draftMs(5, 1, 41)).toBeCloseTo(16, 1);
  });

  it('of several sequences has the rows of their anchors too, before any was observed', () => {
    const costs = new CostModel(POINTS, DRAFTS);
    // By rows: 3 rows 2 ms and 7 rows 4 ms, so 24 rows for 8 sequences of a token each take 12.5 ms.
    expect(costs.draftMs(8, 8)).toBeCloseTo(12.5, 9);
    costs.measured(8, POINTS, [
      { rows: 8, ms: 5 },
      { rows: 40, ms: 13 },
    ]);
    expect([8, 24].map((tokens) => costs.draftMs(tokens, 8))).toEqual([5, 9]);
  });
});
