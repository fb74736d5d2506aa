/** Values as 16-bit floats hold them (IEEE 754 binary16, ties to even); beyond 65504 they are infinite. */
const SMALLEST_NORMAL_EXPONENT = -14;
const FRACTION_BITS = 10;
const LARGEST = 65504;

/** @param values rounded in place */
export function roundToHalf(values: Float32Array): void {
  for (let i = 0; i < values.length; i++) values[i] = half(values[i] as number);
}

function half(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return value;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(value))), SMALLEST_NORMAL_EXPONENT);
  const step = 2 ** (exponent - FRACTION_BITS);
  const scaled = value / step;
  const below = Math.floor(scaled);
  const rest = scaled - below;
  const rounded = (rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below) * step;
  return Math.abs(rounded) > LARGEST ? Math.sign(rounded) * Number.POSITIVE_INFINITY : rounded;
}
