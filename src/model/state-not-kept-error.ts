import { AppError } from '../core/app-error.ts';

/** A cache was to be cut back to a length at which its recurrent state is no longer known. */
export class StateNotKeptError extends AppError {
  override readonly name = 'StateNotKeptError';

  /** @param kept the lengths that are possible, in words */
  constructor(length: number, kept: string) {
    super(
      'internal',
      `Expected to cut the cache back to ${kept}, as a recurrent state keeps no others, got ${length}; ` +
        'compute the sequence again from its start',
      { details: { length } },
    );
  }
}
