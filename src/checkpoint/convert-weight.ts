/** Turns the rows of one weight into the bytes of its outputs, a bounded number of rows at a time. */
import { AppError } from '../core/app-error.ts';
import { blockBytes, blocksPerRow, type QuantBits, quantizeRows } from './block-quantization.ts';
import { bytesOf } from './file-io.ts';
import { f32ToBf16, f32ToF16 } from './half-float.ts';
import { firstNotFinite, notFinite } from './refuse-not-finite.ts';
import type { ResolvedWeight } from './resolve-weight.ts';
import type { TensorSink } from './safetensors-writer.ts';
import type { FloatDtype } from './tensor-dtype.ts';
import { throwIfAborted } from './throw-if-aborted.ts';

/** Values in flight: 4 MiB as float32, about twice that with the source and the result. Also how long one turn of the event loop takes: some 10 ms. */
const CHUNK_VALUES = 1 << 20;

/**
 * Hands all outputs of `weight` to `sink`, in row chunks. The event loop turns between chunks.
 *
 * @throws AppError `invalid_checkpoint` when a value is a NaN or an infinity, or beyond what an F16 can be, `aborted`
 */
export async function convertWeight(weight: ResolvedWeight, sink: TensorSink, signal: AbortSignal | undefined): Promise<void> {
  const { rows, columns } = weight.source;
  const chunkRows = Math.min(rows, Math.max(1, Math.floor(CHUNK_VALUES / Math.max(1, columns))));
  const buffer = new Float32Array(chunkRows * columns);
  const encode =
    weight.encoding.type === 'plain'
      ? plainEncoder(weight, weight.encoding.dtype)
      : quantizedEncoder(weight, weight.encoding.bits, weight.encoding.scale);
  for (let start = 0; start < rows; start += chunkRows) {
    throwIfAborted(signal);
    const end = Math.min(rows, start + chunkRows);
    const values = buffer.subarray(0, (end - start) * columns);
    await weight.source.read(start, end, values);
    for (const [name, bytes] of encode(values, start, end - start)) await sink(name, bytes);
  }
}

/** Encodes `count` rows that begin at row `start`: pairs of output name and bytes, good until the next call. */
type Encoder = (values: Float32Array, start: number, count: number) => readonly (readonly [string, Uint8Array])[];

function plainEncoder(weight: ResolvedWeight, dtype: FloatDtype): Encoder {
  const { name } = weight.outputs[0]!;
  return (values, start) => {
    const bad = firstNotFinite(values);
    if (bad >= 0) throw notFinite(weight.name, start + Math.floor(bad / weight.source.columns));
    return [[name, stored(values, dtype, (index) => tooLarge(weight, values, index, start, weight.source.columns))]];
  };
}

function quantizedEncoder(weight: ResolvedWeight, bits: QuantBits, scaleDtype: FloatDtype): Encoder {
  const { columns } = weight.source;
  const blocks = blocksPerRow(columns);
  const [values, scale] = weight.outputs;
  return (source, start, count) => {
    const quantized = new Uint8Array(count * blocks * blockBytes(bits));
    const scales = new Float32Array(count * blocks);
    const bad = quantizeRows(bits, source, count, columns, quantized, scales);
    if (bad >= 0) throw notFinite(weight.name, start + Math.floor(bad / blocks));
    return [
      [values!.name, quantized],
      [scale!.name, stored(scales, scaleDtype, (index) => tooLarge(weight, scales, index, start, blocks))],
    ];
  };
}

/**
 * The values as a type has them.
 * @param refuse makes the error for the index of the first that becomes an infinity
 */
function stored(values: Float32Array, dtype: FloatDtype, refuse: (index: number) => AppError): Uint8Array {
  if (dtype === 'F32') return bytesOf(values);
  const halves = new Uint16Array(values.length);
  (dtype === 'F16' ? f32ToF16 : f32ToBf16)(values, halves);
  const infinity = dtype === 'F16' ? 0x7c00 : 0x7f80;
  const bad = halves.findIndex((half) => (half & 0x7fff) === infinity);
  if (bad >= 0) throw refuse(bad);
  return bytesOf(halves);
}

function tooLarge({ name }: ResolvedWeight, values: Float32Array, index: number, start: number, columns: number): AppError {
  return new AppError(
    'invalid_checkpoint',
    `expected values that fit 16 bits in ${name}, got ${values[index]} in row ${start + Math.floor(index / columns)}; an f16 reaches 65504, so choose bf16`,
  );
}
