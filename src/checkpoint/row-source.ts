/** Matrices that are read row by row: one tensor, several under one another, or chosen rows of either. */
import { AppError } from '../core/app-error.ts';
import type { CheckpointTensor } from './checkpoint-tensor.ts';
import { matrixSize, readTensorRows } from './read-tensor-rows.ts';

export interface RowSource {
  readonly rows: number;
  readonly columns: number;
  /** Writes rows [start, end) to the beginning of `target` as float32. */
  read(start: number, end: number, target: Float32Array): Promise<void>;
}

/** A read that skips at most this many bytes between wanted rows is cheaper than two reads. */
const LARGEST_GAP_BYTES = 64 * 1024;

export function tensorRows(tensor: CheckpointTensor): RowSource {
  return { ...matrixSize(tensor.shape), read: (start, end, target) => readTensorRows(tensor, start, end, target) };
}

/** The rows of all sources, one after the other. All must have the same number of columns. */
export function concatRows(sources: readonly RowSource[]): RowSource {
  const columns = sources[0]!.columns;
  return {
    rows: sources.reduce((sum, source) => sum + source.rows, 0),
    columns,
    async read(start, end, target) {
      let first = 0;
      for (const source of sources) {
        const from = Math.max(start, first);
        const to = Math.min(end, first + source.rows);
        if (from < to) {
          await source.read(from - first, to - first, target.subarray((from - start) * columns, (to - start) * columns));
        }
        first += source.rows;
      }
    },
  };
}

/**
 * Row `rows[i]` of `source` as row i.
 *
 * @throws AppError `invalid_checkpoint` when a row is out of range
 */
export function selectRows(source: RowSource, rows: Int32Array, name: string): RowSource {
  const outside = rows.find((row) => row < 0 || row >= source.rows);
  if (outside !== undefined) {
    throw new AppError('invalid_checkpoint', `expected rows within [0, ${source.rows}) for ${name}, got row ${outside}`);
  }
  const { columns } = source;
  const gap = Math.floor(LARGEST_GAP_BYTES / (4 * columns)) + 1;
  return {
    rows: rows.length,
    columns,
    async read(start, end, target) {
      for (let i = start; i < end; ) {
        let next = i + 1;
        while (next < end && rows[next]! > rows[next - 1]! && rows[next]! - rows[next - 1]! <= gap) next++;
        const first = rows[i]!;
        const span = rows[next - 1]! - first + 1;
        if (span === next - i) {
          await source.read(first, first + span, target.subarray((i - start) * columns));
        } else {
          const all = new Float32Array(span * columns);
          await source.read(first, first + span, all);
          for (let j = i; j < next; j++) {
            const at = (rows[j]! - first) * columns;
            target.set(all.subarray(at, at + columns), (j - start) * columns);
          }
        }
        i = next;
      }
    },
  };
}
