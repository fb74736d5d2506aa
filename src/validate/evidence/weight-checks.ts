/** What the weights of a drafter say without running it. */
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';

export interface WeightChecks {
  /** Frobenius norm of the columns of `fc` that take each tap. */
  readonly fcNorms: readonly number[];
  /** Tensors with values that are no finite numbers. */
  readonly notFinite: readonly string[];
  /** Norm weights [size] that are zero throughout. */
  readonly zeroNorms: readonly string[];
}

const ROWS_AT_ONCE = 1024;

/** @param taps that share the columns of `fc` */
export async function checkWeights(checkpoint: Checkpoint, taps: number): Promise<WeightChecks> {
  const notFinite: string[] = [];
  const zeroNorms: string[] = [];
  let fcNorms: readonly number[] = [];
  for (const name of checkpoint.names) {
    const { shape } = checkpoint.tensor(name);
    const rows = shape[0] ?? 1;
    const columns = shape.slice(1).reduce((product, size) => product * size, 1);
    const squares = new Float64Array(name === 'fc.weight' ? taps : 1);
    const width = columns / squares.length;
    let finite = true;
    for (let first = 0; first < rows; first += ROWS_AT_ONCE) {
      const values = await checkpoint.readRows(name, first, Math.min(first + ROWS_AT_ONCE, rows));
      for (let i = 0; i < values.length; i++) {
        const value = values[i] as number;
        finite &&= Number.isFinite(value);
        const part = squares.length === 1 ? 0 : Math.floor((i % columns) / width);
        squares[part]! += value * value;
      }
    }
    if (!finite) notFinite.push(name);
    if (shape.length === 1 && squares[0] === 0) zeroNorms.push(name);
    if (name === 'fc.weight') fcNorms = Array.from(squares, Math.sqrt);
  }
  return { fcNorms, notFinite, zeroNorms };
}
