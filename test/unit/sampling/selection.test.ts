import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { argmax } from '../../../src/sampling/argmax.ts';
import { inverseCdf } from '../../../src/sampling/inverse-cdf.ts';
import { kthLargest } from '../../../src/sampling/kth-largest.ts';
import { nextAbove } from '../../../src/sampling/next-above.ts';

describe('argmax', () => {
  it.each([
    ['the largest', [1, 3, 2], 1],
    ['the smallest id among equals', [0, 5, 5, 5], 1],
    ['+Infinity', [0, Number.POSITIVE_INFINITY, 5], 1],
    ['the only one that is not masked', [-Infinity, -Infinity, -3e38], 2],
  ])('takes %s', (_, logits, id) => {
    expect(argmax(Float32Array.from(logits))).toBe(id);
  });

  it.each([
    ['NaN at the beginning', [Number.NaN, 1, 2], 'NaN at id 0 of 3'],
    ['NaN after the largest', [1, 2, Number.NaN], 'NaN at id 2 of 3'],
    ['nothing but -Infinity', [-Infinity, -Infinity], 'none among 2'],
    ['an empty row', [], 'none among 0'],
  ])('refuses %s', (_, logits, message) => {
    expect(() => argmax(Float32Array.from(logits))).toThrow(
      expect.objectContaining({ code: 'internal', message: expect.stringContaining(message) }),
    );
  });
});

describe('nextAbove', () => {
  it('finds the first value that is not at most the bound', () => {
    const value = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(Number.NaN, Infinity, -Infinity));
    const bound = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(Infinity, -Infinity));
    fc.assert(
      fc.property(fc.array(value, { maxLength: 30 }), bound, fc.nat({ max: 31 }), (values, limit, start) => {
        const found = values.findIndex((one, index) => index >= start && !(one <= limit));
        expect(nextAbove(Float32Array.from(values), limit, start)).toBe(found === -1 ? Math.max(values.length, start) : found);
      }),
      { numRuns: 500 },
    );
  });
});

describe('kthLargest', () => {
  it('agrees with a sort', () => {
    const values = fc.float32Array({ noNaN: true, minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(values, fc.nat(), (array, seed) => {
        const k = 1 + (seed % array.length);
        expect(kthLargest(array, k)).toBe(array.toSorted()[array.length - k]);
      }),
    );
  });

  it('counts equals and leaves its input alone', () => {
    const values = Float32Array.of(1, 3, 3, 2);
    expect([1, 2, 3, 4].map((k) => kthLargest(values, k))).toEqual([3, 3, 2, 1]);
    expect(values).toEqual(Float32Array.of(1, 3, 3, 2));
  });
});

describe('inverseCdf', () => {
  it.each([
    [0, 1],
    [0.249, 1],
    [0.25, 3],
    [0.749, 3],
    [0.75, 4],
    [1 - 2 ** -53, 4],
  ])('maps %d to index %i', (uniform, index) => {
    expect(inverseCdf(Float64Array.of(0, 0.25, 0, 0.5, 0.25, 0), uniform)).toBe(index);
  });

  it('falls back to the last index with a probability when rounding leaves the sum too small', () => {
    expect(inverseCdf(Float64Array.of(0.5, 0.4999, 0), 0.99995)).toBe(1);
  });
});
