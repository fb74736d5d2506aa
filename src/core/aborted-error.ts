import { AppError } from './app-error.ts';

/** Work stopped because its caller gave up. Never logged as an error. */
export class AbortedError extends AppError {
  override readonly name = 'AbortedError';

  constructor(what: string, cause?: unknown) {
    super('aborted', `${what} was aborted`, cause === undefined ? {} : { cause });
  }
}
