/** Reads small tensors of integers or booleans, such as tables of token ids. */
import { open } from 'node:fs/promises';
import { AppError } from '../core/app-error.ts';
import type { CheckpointTensor } from './checkpoint-tensor.ts';
import { readFully } from './file-io.ts';
import type { TensorDtype } from './tensor-dtype.ts';

type Read = (bytes: Buffer, index: number) => number;

const READERS: Partial<Readonly<Record<TensorDtype, Read>>> = {
  I64: (bytes, index) => Number(bytes.readBigInt64LE(index * 8)),
  I32: (bytes, index) => bytes.readInt32LE(index * 4),
  U8: (bytes, index) => bytes.readUInt8(index),
  BOOL: (bytes, index) => bytes.readUInt8(index),
};

/** Twice the largest vocabulary there is, and still no burden. */
const MOST_ELEMENTS = 1 << 21;

/**
 * All values of a tensor [n], as they are; booleans as 0 and 1.
 *
 * @throws AppError `invalid_checkpoint` when it has more dimensions, another type or too many values
 */
export async function readIntegers(tensor: CheckpointTensor): Promise<number[]> {
  const refuse = (expected: string, got: string) =>
    new AppError('invalid_checkpoint', `expected ${expected} in tensor ${tensor.name}, got ${got}; fetch the weights again`);
  const read = tensor.type === 'plain' ? READERS[tensor.dtype] : undefined;
  if (tensor.type !== 'plain' || read === undefined) {
    throw refuse('integers or booleans', tensor.type === 'plain' ? tensor.dtype : 'quantised floats');
  }
  const [count = 0] = tensor.shape;
  if (tensor.shape.length !== 1 || count > MOST_ELEMENTS) {
    throw refuse(`one dimension of at most ${MOST_ELEMENTS}`, `[${tensor.shape.join(', ')}]`);
  }
  const bytes = Buffer.alloc(tensor.byteLength);
  await using handle = await open(tensor.file, 'r');
  await readFully(handle, bytes, tensor.offset, tensor.file);
  return Array.from({ length: count }, (_, index) => read(bytes, index));
}
