import { describe, expect, it } from 'vitest';
import { breakEven, knee, speculationGain } from '../../../src/bench/gains.ts';
import type { RequestRecord } from '../../../src/bench/request-record.ts';
import type { PointFigures } from '../../../src/bench/result-schema.ts';

const record = (prompt: string, e2el: number, outputTokens = 10, error: string | null = null): RequestRecord => ({
  prompt,
  category: 'x',
  error,
  inputTokens: 5,
  outputTokens,
  ttft: 1,
  tpot: 1,
  e2el,
  itl: [],
  itlPerToken: [],
  text: '',
  speculation: null,
});
const exact = (value: number | null) => ({ value, low: null, high: null });
const gains = (...values: [number, number | null][]) =>
  values.map(([concurrency, value]) => ({ concurrency, gain: exact(value) }));

describe('the gain', () => {
  it('is the time of plain decoding over that of speculation, of prompts that both have answered', () => {
    const plain = [record('a', 100), record('a', 120), record('b', 300), record('only-plain', 9999)];
    const own = [record('a', 50), record('a', 60), record('b', 200), record('b', 1, 10, 'failed')];
    const { value, low, high } = speculationGain(plain, own);
    expect(value).toBeCloseTo(520 / 310, 10);
    // Between the gain of one prompt alone and that of the other.
    expect(low).toBeCloseTo(1.5, 10);
    expect(high).toBeCloseTo(2, 10);
  });

  it('is per token, where answers differ in length', () => {
    expect(
      speculationGain([record('a', 100, 10), record('b', 100, 10)], [record('a', 50, 5), record('b', 50, 5)]).value,
    ).toBeCloseTo(1, 10);
  });

  it('is unknown without common prompts', () => {
    expect(speculationGain([record('a', 100)], [record('b', 50)]).value).toBeNull();
  });
});

describe('the load at which speculation stops to pay', () => {
  it.each([
    ['none when the highest load pays', gains([1, 2], [2, 1.5], [4, 1.1]), null],
    ['none when the highest load pays again', gains([1, 2], [2, 0.9], [4, 1.1]), null],
    ['half-way on the logarithm', gains([1, 2], [2, 1.5], [8, 0.5]), 4],
    ['the lowest when none pays', gains([2, 0.9], [4, 0.8]), 2],
    ['known from what was measured', gains([1, 1.5], [2, null], [4, 0.5]), 2],
  ])('is %s', (_, given, expected) => {
    const at = breakEven(given);
    if (expected === null) expect(at).toBeNull();
    else expect(at).toBeCloseTo(expected, 10);
  });
});

describe('the knee', () => {
  const point = (max_concurrency: number, output_throughput: number, latency: number | null) =>
    ({ max_concurrency, output_throughput, times: { mean_e2el_ms: latency } }) as unknown as PointFigures;

  it('is where throughput over latency is largest', () => {
    expect(knee([point(1, 100, 10), point(2, 190, 11), point(4, 250, 16), point(8, 255, 31)])).toBe(2);
  });

  it('is unknown of nothing', () => {
    expect(knee([])).toBeNull();
    expect(knee([point(1, 0, null)])).toBeNull();
  });
});
