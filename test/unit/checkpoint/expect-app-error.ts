import { expect } from 'vitest';
import { AppError, type ErrorCode } from '../../../src/core/app-error.ts';

/** Expects a rejection with `code` and a message of one sentence that matches `pattern`. */
export async function expectAppError(action: Promise<unknown>, code: ErrorCode, pattern: RegExp): Promise<void> {
  const error = await action.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AppError);
  if (!(error instanceof AppError)) return;
  expect(error.code).toBe(code);
  expect(error.message).toMatch(pattern);
  expect(error.message).not.toMatch(/\n|\. [A-Z]|undefined|\[object/);
}
