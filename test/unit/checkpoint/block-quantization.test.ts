import { describe, expect, it } from 'vitest';
import {
  blocksPerRow,
  dequantizeRows,
  type QuantBits,
  quantizedShape,
  quantizeRows,
} from '../../../src/checkpoint/block-quantization.ts';
import { f16ToF32, f32ToF16 } from '../../../src/checkpoint/half-float.ts';
import { weights } from './checkpoint-fixture.ts';

interface Encoded {
  readonly quantized: Uint8Array;
  readonly scales: Float32Array;
  /** What decoding gives. */
  readonly values: Float32Array;
}

function encode(bits: QuantBits, values: Float32Array, rows: number, columns: number): Encoded {
  const quantized = new Uint8Array(quantizedShape(bits, rows, columns).reduce((a, b) => a * b));
  const scales = new Float32Array(rows * blocksPerRow(columns));
  expect(quantizeRows(bits, values, rows, columns, quantized, scales)).toBe(-1);
  const decoded = new Float32Array(values.length);
  dequantizeRows(bits, quantized, scales, rows, columns, decoded);
  // A zero times a negative scale is -0, which tests should not have to tell from 0.
  return { quantized, scales, values: decoded.map((value) => value + 0) };
}

/** Numbers that repeat in each run, uniform over 32 bits. */
function randomInts(count: number, seed: number): Uint32Array {
  let state = seed;
  return Uint32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state ^ (state >>> 15)) >>> 0;
  });
}

/** Blocks of integers times a random float32 scale; each has one code of the largest magnitude. */
function gridValues(blocks: number, largest: number, scaleOf: (index: number) => number): Float32Array {
  const random = randomInts(blocks * 32, 7);
  return Float32Array.from(random, (value, i) => {
    const code = i % 32 === 5 ? (value & 1 ? largest : -largest) : (value % (2 * largest + 1)) - largest;
    return Math.fround(code * scaleOf(i >> 5));
  });
}

const SCALES = Float32Array.from(randomInts(4096, 99), (value) => (1 + value / 2 ** 32) * 2 ** ((value & 31) - 20));

describe('int8 blocks', () => {
  it('store round(value / scale) + 128 with the scale that makes the largest magnitude 127', () => {
    const values = new Float32Array(32);
    values.set([2, -4, 1, 0.01]);
    const { quantized, scales } = encode(8, values, 1, 32);
    expect(scales[0]).toBeCloseTo(4 / 127, 8);
    expect([...quantized.subarray(0, 5)]).toEqual([192, 1, 160, 128, 128]);
  });

  it('give back integers of -127 to 127 times a float32 scale without any error', () => {
    const values = gridValues(4096, 127, (block) => SCALES[block]!);
    expect(encode(8, values, 4096, 32).values).toEqual(values);
  });

  it('give back the codes of 8-bit weights that were rounded to float16', () => {
    const exact = gridValues(512, 127, (block) => Math.fround(0.001 + block * 1e-5));
    const halves = new Uint16Array(exact.length);
    f32ToF16(exact, halves);
    const rounded = new Float32Array(exact.length);
    f16ToF32(halves, rounded);
    const { quantized } = encode(8, rounded, 512, 32);
    const codes = Uint8Array.from(exact, (value, i) => 128 + Math.round(value / Math.fround(0.001 + (i >> 5) * 1e-5)));
    expect(quantized).toEqual(codes);
  });
});

describe('int4 blocks', () => {
  it('put the even index in the low half of a byte', () => {
    const values = new Float32Array(32);
    values.set([-8, 7, 3, -2]);
    const { quantized, scales } = encode(4, values, 1, 32);
    expect(scales[0]).toBe(1);
    expect([...quantized.subarray(0, 3)]).toEqual([0xf0, 0x6b, 0x88]);
  });

  it('map the value of largest magnitude to code 0, with a negative scale when it is positive', () => {
    const values = new Float32Array(32);
    values.set([8, -7, 3]);
    const encoded = encode(4, values, 1, 32);
    expect(encoded.scales[0]).toBe(-1);
    expect(encoded.quantized[0]).toBe(0xf0);
    expect(encoded.values).toEqual(values);
  });

  it('use steps of a seventh where both ends of the block are equally large', () => {
    const values = Float32Array.from({ length: 32 }, (_, i) => (i % 2 === 0 ? 7 : -7));
    const encoded = encode(4, values, 1, 32);
    expect(encoded.scales[0]).toBe(1);
    expect(encoded.values).toEqual(values);
  });

  it('never have a larger squared error than either way alone', () => {
    const values = weights(64 * 32);
    const { values: decoded } = encode(4, values, 64, 32);
    const error = (block: number, code: (value: number) => number) =>
      values.subarray(block * 32, block * 32 + 32).reduce((sum, value) => sum + (code(value) - value) ** 2, 0);
    for (let block = 0; block < 64; block++) {
      const part = values.subarray(block * 32, block * 32 + 32);
      const peak = part.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
      const full = Math.fround(peak / -8);
      const even = Math.fround(Math.abs(peak) / 7);
      let ours = 0;
      for (let i = 0; i < 32; i++) ours += (decoded[block * 32 + i]! - part[i]!) ** 2;
      const fullError = error(block, (value) => Math.fround(full * Math.max(-8, Math.min(7, Math.floor(value / full + 0.5)))));
      const evenError = error(block, (value) => Math.fround(even * Math.floor(value / even + 0.5)));
      expect(ours).toBeLessThanOrEqual(Math.min(fullError, evenError) * (1 + 1e-9));
    }
  });

  it('give back integers of -7 to 7 times a float32 scale without any error', () => {
    const values = gridValues(4096, 7, (block) => SCALES[block]!);
    expect(encode(4, values, 4096, 32).values).toEqual(values);
  });
});

describe.each<QuantBits>([8, 4])('int%i blocks', (bits) => {
  it('come out the same when quantised again', () => {
    const once = encode(bits, weights(100 * 96), 100, 96);
    const twice = encode(bits, once.values, 100, 96);
    expect(twice.values).toEqual(once.values);
    expect(encode(bits, twice.values, 100, 96)).toEqual(twice);
  });

  it('fill a short last block with the zero point', () => {
    const { quantized, values } = encode(
      bits,
      Float32Array.from({ length: 80 }, (_, i) => i - 40),
      2,
      40,
    );
    const bytes = bits * 4;
    for (const row of [0, 1]) {
      const tail = quantized.subarray((row * 2 + 1) * bytes + bits, (row * 2 + 2) * bytes);
      expect(tail.length).toBe(3 * bits);
      expect(tail.every((byte) => byte === (bits === 8 ? 128 : 0x88))).toBe(true);
    }
    expect(values[0]).toBeCloseTo(-40, 4);
    expect(Math.abs(values[79]! - 39)).toBeLessThanOrEqual(bits === 8 ? 0.2 : 3);
  });

  it('keep zeros zero', () => {
    const { values, quantized, scales } = encode(bits, new Float32Array(64), 2, 32);
    expect(values).toEqual(new Float32Array(64));
    expect(scales).toEqual(new Float32Array(2));
    expect(quantized.every((byte) => byte === (bits === 8 ? 128 : 0x88))).toBe(true);
  });

  it('stay in range where the scale itself is a coarse subnormal', () => {
    for (let peak = 1; peak < 400; peak++) {
      const values = new Float32Array(32);
      values.set([peak * 2 ** -149, -peak * 2 ** -149]);
      const { values: decoded } = encode(bits, values, 1, 32);
      expect(decoded[0]).toBeGreaterThanOrEqual(0);
      expect(decoded[1]).toBeLessThanOrEqual(0);
    }
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])('name the block that holds %d', (bad) => {
    const values = weights(4 * 64);
    values[2 * 64 + 40] = bad;
    expect(quantizeRows(bits, values, 4, 64, new Uint8Array(256), new Float32Array(8))).toBe(5);
  });
});
