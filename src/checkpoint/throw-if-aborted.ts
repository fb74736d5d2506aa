import { AppError } from '../core/app-error.ts';

/** Throws AppError `aborted` once the caller gave up. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true)
    throw new AppError('aborted', 'the preparation of weights was given up', { cause: signal.reason });
}
