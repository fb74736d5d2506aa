import { describe, expect, it } from 'vitest';
import { CounterRng, type PhiloxBlock, philox4x32 } from '../../../src/sampling/counter-rng.ts';

/** Upper 1e-6 quantile of the chi-square distribution, by Wilson and Hilferty's approximation. */
function chiSquareLimit(degrees: number): number {
  const z = 4.753;
  const c = 2 / (9 * degrees);
  return degrees * (1 - c + z * Math.sqrt(c)) ** 3;
}

function chiSquare(counts: readonly number[], expected: number): number {
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

describe('philox4x32', () => {
  // kat_vectors of the authors' Random123 library.
  it.each<[PhiloxBlock, [number, number], PhiloxBlock]>([
    [
      [0, 0, 0, 0],
      [0, 0],
      [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
    ],
    [
      [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
      [0xffffffff, 0xffffffff],
      [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    ],
    [
      [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      [0xa4093822, 0x299f31d0],
      [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    ],
  ])('gives the published block for counter %j and key %j', (counter, key, block) => {
    expect(philox4x32(counter, key)).toEqual(block);
  });
});

describe('CounterRng', () => {
  it('makes its 53 bits from the first two words of the block', () => {
    const bits = ((0x6627e8d5n >> 5n) << 26n) | (0xe169c58dn >> 6n);
    expect(new CounterRng(0n).uniform(0)).toBe(Number(bits) / 2 ** 53);
  });

  it('is stateless', () => {
    const rng = new CounterRng(99n);
    const first = rng.uniform(7);
    rng.uniform(8);
    expect(rng.uniform(7)).toBe(first);
    expect(new CounterRng(99n).uniform(7)).toBe(first);
  });

  it('uses all 64 bits of the seed, 53 of the position and the stream', () => {
    const numbers = [
      new CounterRng(1n).uniform(3),
      new CounterRng(1n + (1n << 32n)).uniform(3),
      new CounterRng(1n + (1n << 63n)).uniform(3),
      new CounterRng(1n).uniform(3 + 2 ** 32),
      new CounterRng(1n).uniform(3 + 2 ** 52),
      new CounterRng(1n).uniform(3, 1),
    ];
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('takes a negative seed modulo 2^64', () => {
    expect(new CounterRng(-1n).uniform(5)).toBe(new CounterRng((1n << 64n) - 1n).uniform(5));
  });

  const COUNT = 100_000;
  it.each([0n, 1n, 0xdeadbeefn, 2n ** 64n - 1n])('is uniform over positions for seed %s', (seed) => {
    const rng = new CounterRng(seed);
    const buckets = new Array<number>(256).fill(0);
    let sum = 0;
    let squares = 0;
    for (let position = 0; position < COUNT; position++) {
      const value = rng.uniform(position);
      expect(value >= 0 && value < 1).toBe(true);
      buckets[Math.floor(value * 256)]! += 1;
      sum += value;
      squares += value * value;
    }
    const mean = sum / COUNT;
    // Five standard errors: 1/sqrt(12 n) for the mean, 1/sqrt(180 n) for the variance.
    expect(Math.abs(mean - 1 / 2)).toBeLessThan(5 / Math.sqrt(12 * COUNT));
    expect(Math.abs(squares / COUNT - mean * mean - 1 / 12)).toBeLessThan(5 / Math.sqrt(180 * COUNT));
    expect(chiSquare(buckets, COUNT / 256)).toBeLessThan(chiSquareLimit(255));
  });

  it('is uniform over seeds at one position', () => {
    const buckets = new Array<number>(256).fill(0);
    for (let seed = 0n; seed < 50_000n; seed++) buckets[Math.floor(new CounterRng(seed).uniform(17) * 256)]! += 1;
    expect(chiSquare(buckets, 50_000 / 256)).toBeLessThan(chiSquareLimit(255));
  });

  it.each<[string, (index: number) => [number, number]]>([
    ['positions', (index) => [new CounterRng(42n).uniform(index), new CounterRng(42n).uniform(index + 1)]],
    ['seeds', (index) => [new CounterRng(BigInt(index)).uniform(9), new CounterRng(BigInt(index + 1)).uniform(9)]],
    ['streams', (index) => [new CounterRng(42n).uniform(index, 0), new CounterRng(42n).uniform(index, 1)]],
  ])('is independent between neighbouring %s', (_, pair) => {
    const cells = new Array<number>(256).fill(0);
    for (let index = 0; index < 40_000; index++) {
      const [left, right] = pair(index);
      cells[Math.floor(left * 16) * 16 + Math.floor(right * 16)]! += 1;
    }
    expect(chiSquare(cells, 40_000 / 256)).toBeLessThan(chiSquareLimit(255));
  });
});
