import { describe, expect, it } from 'vitest';
import { needsWindowBias, windowBias } from '../../../src/graph/slot-attention.ts';

const OUT = Number.NEGATIVE_INFINITY;

describe('the window bias', () => {
  it('lets each of the last rows see its window on both sides', () => {
    const bias = new Float32Array(3 * 5).fill(7);
    windowBias(3, 5, 2, bias);
    expect([...bias]).toEqual([
      ...[OUT, 0, 0, 0, OUT], // position 2
      ...[OUT, OUT, 0, 0, 0], // position 3
      ...[OUT, OUT, OUT, 0, 0], // position 4
    ]);
  });

  it('hides nothing when the window is as long as the sequence', () => {
    const bias = new Float32Array(2 * 4).fill(7);
    windowBias(2, 4, 4, bias);
    expect([...bias]).toEqual(new Array(8).fill(0));
  });

  it('is needed where rows see ahead within a window', () => {
    expect(needsWindowBias({ causal: false, window: 8 })).toBe(true);
    expect(needsWindowBias({ causal: true, window: 8 })).toBe(false);
    expect(needsWindowBias({ causal: false, window: null })).toBe(false);
  });
});
