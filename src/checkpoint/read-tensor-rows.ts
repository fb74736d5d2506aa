/** Reads rows of a stored tensor as float32, touching only their bytes. */
import { open } from 'node:fs/promises';
import { AppError } from '../core/app-error.ts';
import { blockBytes, blocksPerRow, dequantizeRows } from './block-quantization.ts';
import type { CheckpointTensor, PlainTensor, QuantizedTensor } from './checkpoint-tensor.ts';
import { bytesOf, readFully, systemErrorCode } from './file-io.ts';
import { bf16ToF32, f16ToF32 } from './half-float.ts';
import { elementCount } from './tensor-dtype.ts';

/** A tensor seen as a matrix: the first dimension by all others. A scalar is one row of one value. */
export function matrixSize(shape: readonly number[]): { readonly rows: number; readonly columns: number } {
  return { rows: shape[0] ?? 1, columns: elementCount(shape.slice(1)) };
}

/**
 * Reads rows [rowStart, rowEnd) of `tensor`.
 *
 * @param target receives (rowEnd - rowStart) * columns values at its beginning
 * @throws AppError `invalid_checkpoint` when the dtype is not F32, F16 or BF16 or the file got shorter, `internal` for rows out of range
 */
export async function readTensorRows(
  tensor: CheckpointTensor,
  rowStart: number,
  rowEnd: number,
  target: Float32Array,
): Promise<void> {
  const { rows, columns } = matrixSize(tensor.shape);
  if (!(rowStart >= 0 && rowStart <= rowEnd && rowEnd <= rows)) {
    throw new AppError('internal', `expected rows within [0, ${rows}) of ${tensor.name}, got [${rowStart}, ${rowEnd})`);
  }
  const values = target.subarray(0, (rowEnd - rowStart) * columns);
  if (tensor.type === 'quantized') await readQuantized(tensor, rowStart, rowEnd, columns, values);
  else await readPlain(tensor, rowStart * columns, values);
}

async function readPlain(tensor: PlainTensor, firstElement: number, values: Float32Array): Promise<void> {
  if (tensor.dtype === 'F32') {
    await readAt(tensor.file, tensor.offset + firstElement * 4, bytesOf(values));
    return;
  }
  const convert = tensor.dtype === 'F16' ? f16ToF32 : tensor.dtype === 'BF16' ? bf16ToF32 : null;
  if (convert === null) {
    throw new AppError(
      'invalid_checkpoint',
      `expected F32, F16 or BF16 values in tensor ${tensor.name}, got ${tensor.dtype}; convert the checkpoint to one of them`,
    );
  }
  const halves = new Uint16Array(values.length);
  await readAt(tensor.file, tensor.offset + firstElement * 2, bytesOf(halves));
  convert(halves, values);
}

async function readQuantized(
  tensor: QuantizedTensor,
  rowStart: number,
  rowEnd: number,
  columns: number,
  values: Float32Array,
): Promise<void> {
  const rows = rowEnd - rowStart;
  const blocks = blocksPerRow(columns);
  const rowBytes = blocks * blockBytes(tensor.bits);
  const quantized = new Uint8Array(rows * rowBytes);
  const scales = new Float32Array(rows * blocks);
  await readAt(tensor.values.file, tensor.values.offset + rowStart * rowBytes, quantized);
  await readAt(tensor.scale.file, tensor.scale.offset + rowStart * blocks * 4, bytesOf(scales));
  dequantizeRows(tensor.bits, quantized, scales, rows, columns, values);
}

async function readAt(file: string, position: number, bytes: Uint8Array): Promise<void> {
  try {
    await using handle = await open(file, 'r');
    await readFully(handle, bytes, position, file);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError(
      'invalid_checkpoint',
      `expected to read weights from ${file}, got ${systemErrorCode(error)}; leave the files in place while the model is in use`,
      { cause: error },
    );
  }
}
