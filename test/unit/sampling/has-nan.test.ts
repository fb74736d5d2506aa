import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasNan } from '../../../src/sampling/has-nan.ts';

describe('NaN among logits', () => {
  it('is found wherever it stands, and nowhere else', () => {
    fc.assert(
      fc.property(fc.float32Array({ noNaN: true, noDefaultInfinity: true }), fc.nat(), (values, place) => {
        expect(hasNan(values)).toBe(false);
        if (values.length === 0) return;
        values[place % values.length] = Number.NaN;
        expect(hasNan(values)).toBe(true);
      }),
    );
  });

  it('is not the largest that floats can be, nor a masked token', () => {
    expect(hasNan(new Float32Array(100_000).fill(3.4e38))).toBe(false);
    expect(hasNan(Float32Array.of(1, Number.NEGATIVE_INFINITY, 2))).toBe(false);
  });
});
