/** A folder of safetensors weights, opened for reading. */
import { AppError } from '../core/app-error.ts';
import { type CheckpointTensor, collectTensors } from './checkpoint-tensor.ts';
import { matrixSize, readTensorRows } from './read-tensor-rows.ts';
import { readWeightFiles } from './weight-files.ts';

/** Holds headers only, no open files and no values: nothing to dispose. */
export interface Checkpoint {
  readonly folder: string;
  /** Names of all tensors; a quantised one has the one name of the tensor it stands for. */
  readonly names: readonly string[];
  has(name: string): boolean;
  /** @throws AppError `invalid_checkpoint` when there is no such tensor */
  tensor(name: string): CheckpointTensor;
  /**
   * Rows [rowStart, rowEnd) as float32, [rows, product of the other dimensions]. A vector has rows of one value.
   *
   * @throws AppError `invalid_checkpoint` when the tensor is absent or not of floats
   */
  readRows(name: string, rowStart: number, rowEnd: number): Promise<Float32Array>;
  /** As `readRows`, into the beginning of `target`. */
  readRowsInto(name: string, rowStart: number, rowEnd: number, target: Float32Array): Promise<void>;
}

/**
 * Opens `model.safetensors`, or the shards of `model.safetensors.index.json`, in `folder`.
 *
 * @throws AppError `invalid_checkpoint` when the weights are missing, damaged or contradict their index
 */
export async function openCheckpoint(folder: string): Promise<Checkpoint> {
  const tensors = collectTensors(await readWeightFiles(folder));

  function tensor(name: string): CheckpointTensor {
    const found = tensors.get(name);
    if (found === undefined) {
      throw new AppError(
        'invalid_checkpoint',
        `expected tensor ${name} in ${folder}, got ${tensors.size} others; check that config.json belongs to these weights`,
      );
    }
    return found;
  }

  return {
    folder,
    names: [...tensors.keys()],
    has: (name) => tensors.has(name),
    tensor,
    async readRows(name, rowStart, rowEnd) {
      const found = tensor(name);
      const values = new Float32Array(Math.max(0, rowEnd - rowStart) * matrixSize(found.shape).columns);
      await readTensorRows(found, rowStart, rowEnd, values);
      return values;
    },
    readRowsInto: (name, rowStart, rowEnd, target) => readTensorRows(tensor(name), rowStart, rowEnd, target),
  };
}
