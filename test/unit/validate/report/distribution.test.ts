import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { largestIndices, logPartition, overlap, rankOf } from '../../../../src/sampling/row-measures.ts';

const row = fc
  .array(fc.integer({ min: -6, max: 6 }), { minLength: 2, maxLength: 20 })
  .map((values) => Float32Array.from(values));

describe('what a row of logits says', () => {
  it('has the largest values in order, the smaller index first among equals', () => {
    fc.assert(
      fc.property(row, fc.integer({ min: 1, max: 8 }), (values, count) => {
        const sorted = [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
        expect(largestIndices(values, count)).toEqual(sorted.slice(0, count));
      }),
    );
  });

  it('ranks a token by how many come before it', () => {
    fc.assert(
      fc.property(row, (values) => {
        const sorted = largestIndices(values, values.length);
        for (const [rank, token] of sorted.entries()) expect(rankOf(values, token)).toBe(rank);
      }),
    );
  });

  it('sums to one at any temperature', () => {
    fc.assert(
      fc.property(row, fc.constantFrom(0.3, 1, 2), (values, temperature) => {
        const partition = logPartition(values, temperature);
        const sum = values.reduce((total, value) => total + Math.exp(value / temperature - partition), 0);
        expect(sum).toBeCloseTo(1, 9);
      }),
    );
  });

  it('overlaps as 1 - TV, also where the drafter has only some tokens', () => {
    const target = Float32Array.from([0.5, 0.4, 0.1], Math.log);
    const draft = Float32Array.from([0.4, 0.6], Math.log);
    const ends = { logits: target, logPartition: 0, temperature: 1 };
    expect(overlap({ logits: draft, logPartition: 0 }, [2, 0], ends)).toBeCloseTo(0.1 + 0.5, 6);
    expect(overlap({ logits: target, logPartition: 0 }, null, ends)).toBeCloseTo(1, 6);
  });
});
