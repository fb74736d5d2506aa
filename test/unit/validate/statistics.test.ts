import { describe, expect, it } from 'vitest';
import {
  estimateFromInfluences,
  jackknifeEstimate,
  pairedRatioDifference,
  ratioEstimate,
  unpairedRatioDifference,
} from '../../../src/validate/statistics/estimate.ts';
import { holmAdjusted } from '../../../src/validate/statistics/holm.ts';
import { criticalValue, upperTail } from '../../../src/validate/statistics/student-t.ts';

describe('Student t', () => {
  it.each([
    // Published tables of the t distribution.
    [12.706, 1, 0.025],
    [2.228, 10, 0.025],
    [1.812, 10, 0.05],
    [1.99, 79, 0.025],
    [3.291, 1e6, 0.0005],
  ])('exceeds %d with %d degrees of freedom with probability %d', (t, freedom, tail) => {
    expect(upperTail(t, freedom)).toBeCloseTo(tail, 4);
    expect(criticalValue(tail, freedom)).toBeCloseTo(t, 2);
  });

  it('is symmetric and ends at 0 and 1', () => {
    expect(upperTail(0, 7)).toBeCloseTo(0.5, 12);
    expect(upperTail(-1.3, 7) + upperTail(1.3, 7)).toBeCloseTo(1, 12);
    expect(upperTail(Number.POSITIVE_INFINITY, 7)).toBe(0);
    expect(upperTail(Number.NEGATIVE_INFINITY, 7)).toBe(1);
  });
});

describe('estimates', () => {
  const plain = (values: readonly number[]) => values.map((dividend) => ({ dividend, divisor: 1 }));

  it('of equally large clusters are the mean and its standard error', () => {
    const estimate = ratioEstimate(plain([1, 2, 3, 4, 5]));
    expect(estimate.value).toBe(3);
    expect(estimate.standardError).toBeCloseTo(Math.sqrt(2.5 / 5), 12);
    expect(estimate.high - 3).toBeCloseTo(2.776 * Math.sqrt(0.5), 3);
  });

  it('weigh clusters by their size', () => {
    const estimate = ratioEstimate([
      { dividend: 10, divisor: 1 },
      { dividend: 9, divisor: 9 },
    ]);
    expect(estimate.value).toBeCloseTo(1.9, 12);
  });

  it('of paired differences do not see what both have in common', () => {
    const base = plain([1, 5, 9, 2]);
    const changed = plain([1.1, 5.1, 9.1, 2.1]);
    const paired = pairedRatioDifference(changed, base);
    expect(paired.value).toBeCloseTo(0.1, 12);
    expect(paired.standardError).toBeLessThan(1e-10);
    expect(unpairedRatioDifference(changed, base).standardError).toBeGreaterThan(1);
  });

  it('without spread are certain, and without a difference no evidence', () => {
    expect(estimateFromInfluences(0.5, [0, 0, 0]).p).toBe(0);
    expect(estimateFromInfluences(0, [0, 0, 0]).p).toBe(1);
    expect(estimateFromInfluences(0.5, [0]).p).toBe(1);
  });

  it('by the jackknife agree with those of a ratio', () => {
    const ratios = [
      { dividend: 3, divisor: 2 },
      { dividend: 4, divisor: 3 },
      { dividend: 9, divisor: 4 },
      { dividend: 5, divisor: 3 },
    ];
    const linear = ratioEstimate(ratios);
    const jackknife = jackknifeEstimate(ratios, (kept) => ratioEstimate(kept).value);
    expect(jackknife.value).toBe(linear.value);
    expect(jackknife.standardError / linear.standardError).toBeCloseTo(1, 0);
  });

  it('cover the true value about as often as they say', () => {
    let state = 12345;
    const uniform = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    let covered = 0;
    const TRIALS = 400;
    for (let trial = 0; trial < TRIALS; trial++) {
      const estimate = ratioEstimate(plain(Array.from({ length: 12 }, () => uniform() + uniform())));
      if (estimate.low <= 1 && 1 <= estimate.high) covered++;
    }
    expect(covered / TRIALS).toBeGreaterThan(0.92);
    expect(covered / TRIALS).toBeLessThan(0.98);
  });
});

describe('Holm', () => {
  it('multiplies by the questions that are left, and never falls', () => {
    const adjusted = holmAdjusted([0.01, 0.04, 0.03, 0.005]);
    for (const [index, expected] of [0.03, 0.06, 0.06, 0.02].entries()) expect(adjusted[index]).toBeCloseTo(expected, 12);
  });

  it('stays at or below 1', () => {
    expect(holmAdjusted([0.9, 0.8])).toEqual([1, 1]);
  });
});
