import { AppError } from '../core/app-error.ts';

/** What is wrong with the folder of a drafter that was to take another one's place, for the caller, who named it. */
export function drafterRefused(message: string, cause?: unknown): AppError {
  return new AppError('invalid_request', message, { cause, details: { param: 'path', code: 'drafter_refused' } });
}
