import { AppError } from '../core/app-error.ts';
import type { Sequence } from './sequence.ts';

/** A round failed for the sequences that had rows in its step; all others are as they were. The cause says why. */
export class RoundFailedError extends AppError {
  override readonly name = 'RoundFailedError';
  readonly sequences: readonly Sequence[];

  constructor(sequences: readonly Sequence[], cause: unknown) {
    super(cause instanceof AppError ? cause.code : 'internal', cause instanceof Error ? cause.message : String(cause), {
      cause,
    });
    this.sequences = sequences;
  }
}
