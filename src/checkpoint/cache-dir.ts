import { homedir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { systemErrorCode } from './file-io.ts';

/** Where prepared weights are kept: `$BLOCKDRAFT_CACHE_DIR`, `$XDG_CACHE_HOME/blockdraft` or `~/.cache/blockdraft`. */
export function defaultCacheDir(env: NodeJS.ProcessEnv = process.env): string {
  const own = env['BLOCKDRAFT_CACHE_DIR'];
  if (own) return own;
  const shared = env['XDG_CACHE_HOME'];
  return join(shared ? shared : join(homedir(), '.cache'), 'blockdraft');
}

/** The error for a cache that could not be written. AppErrors pass through. */
export function cacheWriteError(error: unknown, folder: string): AppError {
  if (error instanceof AppError) return error;
  const code = systemErrorCode(error);
  const message =
    code === 'ENOSPC' || code === 'EDQUOT'
      ? `expected room for prepared weights in ${folder}, got a full disk (${code}); free some or set BLOCKDRAFT_CACHE_DIR to another folder`
      : `expected a folder that can be written at ${folder} for prepared weights, got ${code}; set BLOCKDRAFT_CACHE_DIR to another folder`;
  return new AppError('invalid_config', message, { cause: error });
}
