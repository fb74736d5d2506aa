import { realpathSync } from 'node:fs';
import { AppError } from '../core/app-error.ts';

/** @throws AppError `invalid_config` when there is none */
export function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch (cause) {
    throw new AppError('invalid_config', `Expected a folder that is there, got ${path}; create it before the server starts`, {
      cause,
    });
  }
}
