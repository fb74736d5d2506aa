/** Looks for NaN and infinities where weights are used as they lie, without being read otherwise. */
import { AppError } from '../core/app-error.ts';
import type { ResolvedWeight } from './resolve-weight.ts';

/** Weights of no more values are read whole: norms, biases, small models. */
const WHOLE_VALUES = 1 << 14;
/** Rows of a larger one, spread over it. */
const SAMPLED_ROWS = 3;

/**
 * Reads small weights whole and a few rows of large ones. Damage in the other rows is not seen here; weights that are
 * converted are checked in full as they are.
 *
 * @throws AppError `invalid_checkpoint` naming the tensor and the row
 */
export async function refuseNotFinite({ name, source }: ResolvedWeight): Promise<void> {
  const { rows, columns } = source;
  const whole = rows * columns <= WHOLE_VALUES;
  const starts = whole
    ? [0]
    : Array.from({ length: SAMPLED_ROWS }, (_, i) => Math.floor((i * (rows - 1)) / (SAMPLED_ROWS - 1)));
  for (const start of starts) {
    const values = new Float32Array((whole ? rows : 1) * columns);
    await source.read(start, whole ? rows : start + 1, values);
    const bad = firstNotFinite(values);
    if (bad >= 0) throw notFinite(name, start + Math.floor(bad / columns));
  }
}

/** @returns index of the first NaN or infinity, or -1 */
export function firstNotFinite(values: Float32Array): number {
  // A sum of products with 0 is 0 unless one of them is not a number: much faster than to ask each.
  let poison = 0;
  for (let i = 0; i < values.length; i++) poison += (values[i] as number) * 0;
  return poison === 0 ? -1 : values.findIndex((value) => !Number.isFinite(value));
}

export function notFinite(name: string, row: number): AppError {
  return new AppError(
    'invalid_checkpoint',
    `expected finite values in ${name}, got a NaN or an infinity in row ${row}; the weights are damaged, so fetch them again`,
  );
}
