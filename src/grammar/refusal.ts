import { AppError } from '../core/app-error.ts';

/** What is told to whoever sent a structure that is not served. */
export function refusal(expected: string, got: string, todo?: string): AppError {
  const message = `Expected ${expected}, got ${got}${todo === undefined ? '' : `; ${todo}`}`;
  return new AppError('invalid_request', message, { details: { param: 'structure' } });
}
