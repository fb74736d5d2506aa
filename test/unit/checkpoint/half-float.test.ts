import { describe, expect, it } from 'vitest';
import { bf16ToF32, f16ToF32, f32ToBf16, f32ToF16 } from '../../../src/checkpoint/half-float.ts';

const EVERY_HALF = Uint16Array.from({ length: 0x1_0000 }, (_, i) => i);

/** The value of a float16 by the definition of the format. */
function halfValue(bits: number): number {
  const sign = bits >> 15 === 1 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -14 : sign * (1 + fraction) * 2 ** (exponent - 15);
}

function toHalf(...values: number[]): number[] {
  const halves = new Uint16Array(values.length);
  f32ToF16(Float32Array.from(values), halves);
  return [...halves];
}

function toBf16(...values: number[]): number[] {
  const halves = new Uint16Array(values.length);
  f32ToBf16(Float32Array.from(values), halves);
  return [...halves];
}

describe('float16', () => {
  it('has the defined value for each of the 65536 patterns', () => {
    const floats = new Float32Array(EVERY_HALF.length);
    f16ToF32(EVERY_HALF, floats);
    const wrong = [...EVERY_HALF].filter((bits) => !Object.is(floats[bits], halfValue(bits)));
    expect(wrong).toEqual([]);
  });

  it('comes back from float32 as the same pattern, NaN payloads included', () => {
    const floats = new Float32Array(EVERY_HALF.length);
    const back = new Uint16Array(EVERY_HALF.length);
    f16ToF32(EVERY_HALF, floats);
    f32ToF16(floats, back);
    expect(back).toEqual(EVERY_HALF);
  });

  it('rounds the middle between neighbours to the even one, and anything beside it to the nearer one', () => {
    for (let bits = 0; bits < 0x7bff; bits += 7) {
      const middle = (halfValue(bits) + halfValue(bits + 1)) / 2;
      const above = Math.fround(middle * (1 + 2 ** -20));
      const below = Math.fround(middle * (1 - 2 ** -20));
      expect(toHalf(middle, above, below), `pattern ${bits}`).toEqual([bits + (bits & 1), bits + 1, bits]);
    }
  });

  it('turns what is too large into infinity and what is too small into a signed zero', () => {
    expect(toHalf(65504, 65519.99, 65520, 100000, -1e30, 2 ** -25, -(2 ** -26), 2 ** -24 * 0.75)).toEqual([
      0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00, 0, 0x8000, 1,
    ]);
  });

  it('keeps a NaN whose payload lies in the dropped bits a NaN', () => {
    const floats = new Float32Array(new Uint32Array([0x7f80_0001, 0xff80_0001]).buffer);
    const halves = new Uint16Array(2);
    f32ToF16(floats, halves);
    expect([...halves]).toEqual([0x7e00, 0xfe00]);
  });
});

describe('bfloat16', () => {
  it('is the upper half of the float32 pattern, for each of the 65536', () => {
    const floats = new Float32Array(EVERY_HALF.length);
    const back = new Uint16Array(EVERY_HALF.length);
    bf16ToF32(EVERY_HALF, floats);
    expect(new Uint32Array(floats.buffer)).toEqual(Uint32Array.from(EVERY_HALF, (bits) => bits * 0x1_0000));
    f32ToBf16(floats, back);
    expect(back).toEqual(EVERY_HALF);
  });

  it('knows some values', () => {
    const floats = new Float32Array(6);
    bf16ToF32(Uint16Array.of(0x3f80, 0xc000, 0x4049, 0x0001, 0x7f7f, 0xff80), floats);
    expect([...floats]).toEqual([1, -2, 3.140625, 2 ** -133, 3.3895313892515355e38, Number.NEGATIVE_INFINITY]);
  });

  it('rounds to nearest, ties to even', () => {
    expect(toBf16(1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -8 - 2 ** -20, -3.4e38, 3.4028235e38)).toEqual(
      [0x3f80, 0x3f82, 0x3f81, 0x3f80, 0xff80, 0x7f80],
    );
  });

  it('keeps a NaN whose payload lies in the dropped bits a NaN', () => {
    const halves = new Uint16Array(1);
    f32ToBf16(new Float32Array(new Uint32Array([0x7f80_0001]).buffer), halves);
    expect(halves[0]).toBe(0x7fc0);
  });
});
