import { describe, expect, it } from 'vitest';
import type { MetricType } from '../../../src/load/metrics/metric.ts';
import { percentile } from '../../../src/load/metrics/percentile.ts';
import { createSink } from '../../../src/load/metrics/sink.ts';
import { parseThreshold } from '../../../src/load/metrics/threshold.ts';

function sinkOf(type: MetricType, values: readonly number[]) {
  const sink = createSink(type);
  for (const value of values) sink.add(value);
  return sink;
}

const SECONDS = 4;
const holds = (threshold: string, type: MetricType, values: readonly number[]) =>
  parseThreshold(threshold, 'm', type).holds(sinkOf(type, values), SECONDS);

describe('percentiles', () => {
  it.each([
    [0, 10],
    [50, 25],
    [90, 37],
    [95, 38.5],
    [100, 40],
  ])('lie between order statistics: p(%d) is %d', (percent, expected) => {
    expect(percentile([10, 20, 30, 40], percent)).toBeCloseTo(expected, 10);
  });

  it('of one value are that value, of none 0', () => {
    expect(percentile([7], 95)).toBe(7);
    expect(percentile([], 95)).toBe(0);
  });
});

describe('a threshold', () => {
  it.each<[string, MetricType, number[], boolean]>([
    ['p(95)<39', 'trend', [40, 10, 30, 20], true],
    ['p(95)<38', 'trend', [40, 10, 30, 20], false],
    ['p(99.9) < 40', 'trend', [40, 10, 30, 20], true],
    ['avg==25', 'trend', [40, 10, 30, 20], true],
    ['med<=25', 'trend', [40, 10, 30, 20], true],
    ['min>=10', 'trend', [40, 10, 30, 20], true],
    ['max!=40', 'trend', [40, 10, 30, 20], false],
    ['count>=3', 'counter', [1, 2], true],
    ['rate===0.75', 'counter', [1, 2], true],
    ['rate>0.9', 'rate', [1, 1, 1, 0], false],
    ['rate>=0.75', 'rate', [1, 1, 1, 0], true],
    ['value<3', 'gauge', [9, 2], true],
    ['avg > -1', 'trend', [0], true],
  ])('%s of a %s with %j: %s', (threshold, type, values, expected) => {
    expect(holds(threshold, type, values)).toBe(expected);
  });

  it.each<[string, MetricType]>([
    ['p95<200', 'trend'],
    ['p(101)<200', 'trend'],
    ['p(95)', 'trend'],
    ['<200', 'trend'],
    ['p(95)<fast', 'trend'],
    ['p(95)<200 && avg<100', 'trend'],
    ['p(95)<200', 'rate'],
    ['value>1', 'trend'],
    ['rate>1', 'gauge'],
  ])('is refused: %s of a %s', (threshold, type) => {
    expect(() => parseThreshold(threshold, 'm', type)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(JSON.stringify(threshold)) }),
    );
  });

  it('that asks for a floor is not reached by nothing', () => {
    expect(holds('med>1.2', 'trend', [])).toBe(false);
    expect(holds('rate>0.05', 'rate', [])).toBe(false);
    expect(holds('count==0', 'counter', [])).toBe(true);
  });

  it('ends a test where it says so, after its delay', () => {
    const given = { threshold: 'avg<1', abortOnFail: true, delayAbortEval: '1m30s' };
    expect(parseThreshold(given, 'm', 'trend')).toMatchObject({ abortOnFail: true, delayAbortMs: 90_000 });
  });
});
