import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cacheWriteError, defaultCacheDir } from '../../../src/checkpoint/cache-dir.ts';
import { AppError } from '../../../src/core/app-error.ts';

describe('defaultCacheDir', () => {
  it.each<[NodeJS.ProcessEnv, string]>([
    [{ BLOCKDRAFT_CACHE_DIR: '/a', XDG_CACHE_HOME: '/b' }, '/a'],
    [{ XDG_CACHE_HOME: '/b' }, join('/b', 'blockdraft')],
    [{ BLOCKDRAFT_CACHE_DIR: '', XDG_CACHE_HOME: '' }, join(homedir(), '.cache', 'blockdraft')],
    [{}, join(homedir(), '.cache', 'blockdraft')],
  ])('of %j is %s', (env, expected) => {
    expect(defaultCacheDir(env)).toBe(expected);
  });
});

describe('cacheWriteError', () => {
  it.each([
    [
      'EROFS',
      /^expected a folder that can be written at \/c for prepared weights, got EROFS; set BLOCKDRAFT_CACHE_DIR to another folder$/,
    ],
    ['EACCES', /got EACCES; set/],
    ['ENOSPC', /^expected room for prepared weights in \/c, got a full disk \(ENOSPC\); free some or set/],
  ])('says what %s means', (code, pattern) => {
    const cause = Object.assign(new Error('system'), { code });
    const error = cacheWriteError(cause, '/c');
    expect(error.code).toBe('invalid_config');
    expect(error.message).toMatch(pattern);
    expect(error.cause).toBe(cause);
  });

  it('passes our own errors on', () => {
    const own = new AppError('aborted', 'x');
    expect(cacheWriteError(own, '/c')).toBe(own);
  });
});
