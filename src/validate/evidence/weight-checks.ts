/** What the weights of a drafter say without running it. */
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';

export interface WeightChecks {
  /** Frobenius norm of the columns of `fc` that take each tap. */
  readonly fcNorms: readonly number[];
  /** Tensors with values that are no finite numbers. */
  readonly notFinite: readonly string[];
  /** Share of the weights of norms that are negative: trained ones hardly ever are, unless they stand for differences from one. */
  readonly negativeNorms: number;
  /** Tensors with values that 16-bit floats cannot hold, or hold badly. */
  readonly beyondHalf: readonly string[];
}

const FLOATS: ReadonlySet<string> = new Set(['F32', 'F16', 'BF16']);
const ROWS_AT_ONCE = 1024;
/** Of 16-bit floats: the largest, and the smallest with all of their precision. */
const LARGEST_HALF = 65504;
const SMALLEST_HALF = 2 ** -14;
/** Share of a tensor's sum of squares that may lie below the latter. */
const LARGEST_LOSS = 1e-3;

/** @param taps that share the columns of `fc` */
export async function checkWeights(checkpoint: Checkpoint, taps: number): Promise<WeightChecks> {
  const notFinite: string[] = [];
  const beyondHalf: string[] = [];
  let norms = 0;
  let negative = 0;
  let fcNorms: readonly number[] = [];
  for (const name of checkpoint.names) {
    const tensor = checkpoint.tensor(name);
    const { shape } = tensor;
    // Tables of ids are no weights.
    if (tensor.type === 'plain' && !FLOATS.has(tensor.dtype)) continue;
    const rows = shape[0] ?? 1;
    const columns = shape.slice(1).reduce((product, size) => product * size, 1);
    const squares = new Float64Array(name === 'fc.weight' ? taps : 1);
    const width = columns / squares.length;
    let finite = true;
    let tooLarge = false;
    let small = 0;
    const isNorm = shape.length === 1 && /norm\.weight$/.test(name);
    if (isNorm) norms += rows;
    for (let first = 0; first < rows; first += ROWS_AT_ONCE) {
      const values = await checkpoint.readRows(name, first, Math.min(first + ROWS_AT_ONCE, rows));
      for (let i = 0; i < values.length; i++) {
        const value = values[i] as number;
        finite &&= Number.isFinite(value);
        const part = squares.length === 1 ? 0 : Math.floor((i % columns) / width);
        squares[part]! += value * value;
        const size = Math.abs(value);
        tooLarge ||= size > LARGEST_HALF;
        if (size < SMALLEST_HALF) small += value * value;
        if (isNorm && value < 0) negative++;
      }
    }
    if (!finite) notFinite.push(name);
    const total = squares.reduce((sum, square) => sum + square, 0);
    if (tooLarge || small > LARGEST_LOSS * total) beyondHalf.push(name);
    if (name === 'fc.weight') fcNorms = Array.from(squares, Math.sqrt);
  }
  return { fcNorms, notFinite, negativeNorms: norms === 0 ? 0 : negative / norms, beyondHalf };
}
