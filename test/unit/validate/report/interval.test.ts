import { describe, expect, it } from 'vitest';
import { Bootstrap } from '../../../../src/validate/report/interval.ts';
import { ratioEstimate } from '../../../../src/validate/statistics/estimate.ts';

/** Prompts with different numbers of rounds. */
const RATIOS = Array.from({ length: 60 }, (_, i) => ({ dividend: 10 + ((i * 7) % 23), divisor: 5 + (i % 4) }));

describe('bootstrap intervals', () => {
  it('have the pooled ratio as their value, not the mean of ratios', () => {
    const { value } = new Bootstrap(2).ratio([
      { dividend: 8, divisor: 1 },
      { dividend: 9, divisor: 9 },
    ]);
    expect(value).toBeCloseTo(17 / 10, 12);
  });

  it('are about as wide as the delta method says', () => {
    const { value, low, high } = new Bootstrap(RATIOS.length, 3).ratio(RATIOS);
    const estimate = ratioEstimate(RATIOS);
    expect(value).toBeCloseTo(estimate.value, 12);
    expect(low!).toBeLessThan(value!);
    expect(high!).toBeGreaterThan(value!);
    expect((high! - low!) / (estimate.high - estimate.low)).toBeGreaterThan(0.8);
    expect((high! - low!) / (estimate.high - estimate.low)).toBeLessThan(1.2);
  });

  it('are the same for the same seed, and others for another', () => {
    const first = new Bootstrap(RATIOS.length, 1).ratio(RATIOS);
    expect(new Bootstrap(RATIOS.length, 1).ratio(RATIOS)).toEqual(first);
    expect(new Bootstrap(RATIOS.length, 2).ratio(RATIOS)).not.toEqual(first);
  });

  it('of a paired difference that is the same in every prompt have no width', () => {
    const more = RATIOS.map(({ dividend, divisor }) => ({ dividend: dividend + 0.5 * divisor, divisor }));
    const { value, low, high } = new Bootstrap(RATIOS.length).difference(more, RATIOS);
    for (const end of [value, low, high]) expect(end).toBeCloseTo(0.5, 9);
  });

  it('have no ends with one prompt, and no value without cases', () => {
    expect(new Bootstrap(1).ratio([{ dividend: 3, divisor: 2 }])).toEqual({ value: 1.5, low: null, high: null });
    expect(
      new Bootstrap(2).ratio([
        { dividend: 0, divisor: 0 },
        { dividend: 0, divisor: 0 },
      ]).value,
    ).toBeNull();
  });

  it('leave prompts without a value out of a mean', () => {
    expect(new Bootstrap(3).mean([1, null, 2]).value).toBeCloseTo(1.5, 12);
  });
});
