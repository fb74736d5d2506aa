import { expect, it } from 'vitest';
import { ClusteredMean } from '../../../src/core/clustered-mean.ts';

it('is the mean of all values, with the spread between requests', () => {
  const mean = new ClusteredMean();
  expect(mean.estimate()).toBeNull();
  for (const value of [1, 3]) mean.add('a', value);
  mean.end('a');
  expect(mean.estimate()).toEqual({ mean: 2, count: 2, requests: 1, interval: null });
  for (const value of [4, 4, 5, 3]) mean.add('b', value);
  mean.end('b');
  // Sums 4 and 16 of 2 and 4 values: mean 20/6, residuals ±8/3, so s = sqrt(2 * 2 * (8/3)²) / 6.
  const error = Math.sqrt(2 * 2 * (8 / 3) ** 2) / 6;
  const { interval, ...rest } = mean.estimate()!;
  expect(rest).toEqual({ mean: 20 / 6, count: 6, requests: 2 });
  expect(interval![0]).toBeCloseTo(20 / 6 - 1.95996 * error, 4);
  expect(interval![1]).toBeCloseTo(20 / 6 + 1.95996 * error, 4);
});

it('takes repeated rounds of one answer for one answer', () => {
  const few = new ClusteredMean();
  const many = new ClusteredMean();
  for (let request = 0; request < 10; request++) {
    few.add(`${request}`, request % 3);
    for (let i = 0; i < 50; i++) many.add(`${request}`, request % 3);
    few.end(`${request}`);
    many.end(`${request}`);
  }
  const width = (mean: ClusteredMean) => mean.estimate()!.interval![1] - mean.estimate()!.interval![0];
  expect(width(many)).toBeCloseTo(width(few), 10);
});
