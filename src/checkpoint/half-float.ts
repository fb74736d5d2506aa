/** Conversions between float32 and the two 16-bit floats, on bit patterns, so that NaN payloads survive too. */

let f16Table: Uint32Array | null = null;

/** float32 bits of one float16. */
function f16Bits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0x1f) return sign | 0x7f80_0000 | (mantissa << 13);
  if (exponent !== 0) return sign | ((exponent + 112) << 23) | (mantissa << 13);
  if (mantissa === 0) return sign;
  // A subnormal half is a normal float: shift its highest bit into the hidden place.
  const shift = Math.clz32(mantissa) - 21;
  return sign | ((113 - shift) << 23) | (((mantissa << shift) & 0x3ff) << 13);
}

function f16Lookup(): Uint32Array {
  f16Table ??= Uint32Array.from({ length: 0x1_0000 }, (_, half) => f16Bits(half) >>> 0);
  return f16Table;
}

/** The bits of `values`; a view, not a copy. */
function bitsOf(values: Float32Array): Uint32Array {
  return new Uint32Array(values.buffer, values.byteOffset, values.length);
}

/** Writes the float32 values of the float16 bit patterns `source` to the beginning of `target`. Exact. */
export function f16ToF32(source: Uint16Array, target: Float32Array): void {
  const table = f16Lookup();
  const bits = bitsOf(target);
  for (let i = 0; i < source.length; i++) bits[i] = table[source[i]!]!;
}

/** Writes the float32 values of the bfloat16 bit patterns `source` to the beginning of `target`. Exact. */
export function bf16ToF32(source: Uint16Array, target: Float32Array): void {
  const bits = bitsOf(target);
  for (let i = 0; i < source.length; i++) bits[i] = source[i]! << 16;
}

/** Writes `source` as float16 bit patterns to `target`: round to nearest even, overflow to infinity, NaN stays NaN. */
export function f32ToF16(source: Float32Array, target: Uint16Array): void {
  const bits = bitsOf(source);
  for (let i = 0; i < bits.length; i++) target[i] = halfOf(bits[i]!);
}

function halfOf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) {
    const payload = (magnitude >> 13) & 0x3ff;
    // A payload that lay in the dropped bits only must not turn into infinity.
    return sign | 0x7c00 | (payload === 0 ? 0x200 : payload);
  }
  const exponent = (magnitude >> 23) - 112;
  if (exponent >= 0x1f) return sign | 0x7c00;
  if (exponent > 0) return sign | roundShift((exponent << 23) | (magnitude & 0x7f_ffff), 13);
  // Below half of the smallest subnormal everything rounds to zero.
  if (exponent < -10) return sign;
  return sign | roundShift((magnitude & 0x7f_ffff) | 0x80_0000, 14 - exponent);
}

/** `value >> shift`, rounded to nearest, ties to even. A carry out of the mantissa raises the exponent, as it must. */
function roundShift(value: number, shift: number): number {
  const kept = value >> shift;
  const rest = value & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return rest > half || (rest === half && (kept & 1) === 1) ? kept + 1 : kept;
}

/** Writes `source` as bfloat16 bit patterns to `target`: round to nearest even, overflow to infinity, NaN stays NaN. */
export function f32ToBf16(source: Float32Array, target: Uint16Array): void {
  const bits = bitsOf(source);
  for (let i = 0; i < bits.length; i++) {
    const value = bits[i]!;
    if ((value & 0x7fff_ffff) > 0x7f80_0000) {
      const truncated = value >>> 16;
      target[i] = (truncated & 0x7f) === 0 ? truncated | 0x40 : truncated;
    } else {
      target[i] = (value + 0x7fff + ((value >>> 16) & 1)) >>> 16;
    }
  }
}
