/**
 * Symmetric quantisation in blocks of 32 along a row, in the layout of ONNX Runtime's MatMulNBits with its
 * default zero point: value = (q - 2^(bits - 1)) * scale, int4 packed two to a byte, the even index in the low half.
 */

export const QUANT_BLOCK = 32;

export type QuantBits = 4 | 8;

/** Blocks of one row of `columns` values. */
export function blocksPerRow(columns: number): number {
  return Math.ceil(columns / QUANT_BLOCK);
}

/** Bytes of one block. */
export function blockBytes(bits: QuantBits): number {
  return (QUANT_BLOCK * bits) / 8;
}

/** [out, in] -> shape of the uint8 values, [out, blocks, bytes of a block]. */
export function quantizedShape(bits: QuantBits, rows: number, columns: number): readonly number[] {
  return [rows, blocksPerRow(columns), blockBytes(bits)];
}

// One block, its two encodings, and a float to take apart: the functions below are synchronous and share them.
const block = new Float32Array(QUANT_BLOCK);
const firstCodes = new Uint8Array(QUANT_BLOCK);
const secondCodes = new Uint8Array(QUANT_BLOCK);
const floatCell = new Float32Array(1);
const floatBits = new Uint32Array(floatCell.buffer);

/**
 * Quantises rows.
 *
 * int8 divides by 127, so that Q8_0-like weights come out as they went in. int4 divides the value of largest
 * magnitude by -8, which uses the whole range, or by 7, whichever has the smaller squared error in the block.
 * Quantising what `dequantizeRows` gave returns the same values.
 *
 * @param values [rows, columns]
 * @param quantized receives [rows, blocks, bytes of a block]; a short last block is filled with the zero point
 * @param scales receives [rows, blocks]
 * @returns index of the first block (row * blocks + block) that holds a NaN or an infinity, or -1
 */
export function quantizeRows(
  bits: QuantBits,
  values: Float32Array,
  rows: number,
  columns: number,
  quantized: Uint8Array,
  scales: Float32Array,
): number {
  const blocks = blocksPerRow(columns);
  const bytes = blockBytes(bits);
  for (let row = 0; row < rows; row++) {
    const rowEnd = (row + 1) * columns;
    for (let b = 0; b < blocks; b++) {
      const index = row * blocks + b;
      const start = row * columns + b * QUANT_BLOCK;
      const width = Math.min(QUANT_BLOCK, rowEnd - start);
      let peak = 0;
      let peakMagnitude = 0;
      let poison = 0;
      for (let i = 0; i < width; i++) {
        const value = values[start + i]!;
        block[i] = value;
        poison += value * 0;
        const magnitude = Math.abs(value);
        if (magnitude > peakMagnitude) {
          peakMagnitude = magnitude;
          peak = value;
        }
      }
      if (poison !== 0) return index;
      if (width < QUANT_BLOCK) block.fill(0, width);
      if (bits === 8) {
        scales[index] = encodeSymmetric(peakMagnitude, 127, 128, firstCodes).scale;
        quantized.set(firstCodes, index * bytes);
      } else {
        scales[index] = packInt4(peak, peakMagnitude, quantized, index * bytes);
      }
    }
  }
  return -1;
}

/** Encodes `block` as int4 into 16 bytes of `target`. Returns the scale. */
function packInt4(peak: number, peakMagnitude: number, target: Uint8Array, offset: number): number {
  const fullScale = peak === 0 ? 0 : Math.fround(peak / -8);
  const fullError = encode(fullScale, 8, firstCodes);
  const even = fullError === 0 ? null : encodeSymmetric(peakMagnitude, 7, 8, secondCodes);
  const useFull = even === null || fullError <= even.error;
  const codes = useFull ? firstCodes : secondCodes;
  for (let i = 0; i < QUANT_BLOCK / 2; i++) target[offset + i] = codes[2 * i]! | (codes[2 * i + 1]! << 4);
  return useFull ? fullScale : even.scale;
}

/**
 * Encodes `block` so that the largest magnitude becomes ±`steps`. Values that already lie on such a grid
 * are met exactly: rounding `steps * scale` to float32 loses the last bit of the scale, so its neighbours are tried too.
 */
function encodeSymmetric(
  peakMagnitude: number,
  steps: number,
  zeroPoint: number,
  codes: Uint8Array,
): { scale: number; error: number } {
  let scale = Math.fround(peakMagnitude / steps);
  let error = encode(scale, zeroPoint, codes);
  const rounding = peakMagnitude * 2 ** -22;
  if (error === 0 || error > QUANT_BLOCK * rounding * rounding) return { scale, error };
  floatCell[0] = scale;
  const scaleBits = floatBits[0]!;
  for (const bits of [scaleBits - 1, scaleBits + 1]) {
    floatBits[0] = bits;
    const candidate = floatCell[0];
    const candidateError = encode(candidate, zeroPoint, codes);
    if (candidateError < error) {
      scale = candidate;
      error = candidateError;
    }
  }
  encode(scale, zeroPoint, codes);
  return { scale, error };
}

/** Encodes `block` with a given scale. Returns the squared error of the values that decoding will give. */
function encode(scale: number, zeroPoint: number, codes: Uint8Array): number {
  const inverse = scale === 0 ? 0 : 1 / scale;
  const largest = 2 * zeroPoint - 1;
  const rounding = zeroPoint + 0.5;
  let error = 0;
  for (let i = 0; i < QUANT_BLOCK; i++) {
    const value = block[i]!;
    // Only a scale that is itself subnormal, and so coarse, lets values fall outside the range.
    const code = Math.max(0, Math.min(largest, (value * inverse + rounding) | 0));
    codes[i] = code;
    const difference = Math.fround((code - zeroPoint) * scale) - value;
    error += difference * difference;
  }
  return error;
}

/**
 * The values that `quantizeRows` stored.
 *
 * @param quantized [rows, blocks, bytes of a block]
 * @param scales [rows, blocks]
 * @param values receives [rows, columns]
 */
export function dequantizeRows(
  bits: QuantBits,
  quantized: Uint8Array,
  scales: Float32Array,
  rows: number,
  columns: number,
  values: Float32Array,
): void {
  const blocks = blocksPerRow(columns);
  const bytes = blockBytes(bits);
  for (let row = 0; row < rows; row++) {
    for (let b = 0; b < blocks; b++) {
      const index = row * blocks + b;
      const scale = scales[index]!;
      const start = row * columns + b * QUANT_BLOCK;
      const width = Math.min(QUANT_BLOCK, (row + 1) * columns - start);
      const codes = index * bytes;
      if (bits === 8) {
        for (let i = 0; i < width; i++) values[start + i] = (quantized[codes + i]! - 128) * scale;
      } else {
        for (let i = 0; i < width; i++) {
          const pair = quantized[codes + (i >> 1)]!;
          values[start + i] = (((i & 1) === 0 ? pair & 15 : pair >> 4) - 8) * scale;
        }
      }
    }
  }
}
