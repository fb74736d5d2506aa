import { readFileSync } from 'node:fs';
import { AppError } from '../core/app-error.ts';

/**
 * The keys of a file, one a line; blank lines and lines that begin with `#` are none.
 * @throws AppError `invalid_config` for a file that cannot be read, has no key, or a key that no header can carry
 */
export function readApiKeys(path: string): readonly string[] {
  const keys = readText(path)
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (keys.length === 0) throw refusal(path, 'no key', 'Write one key on each line.');
  // The key itself stays out of the message.
  if (keys.some((key) => !/^[!-~]+$/.test(key))) {
    throw refusal(path, 'a key with blanks or letters beyond ASCII', 'Write one key on each line.');
  }
  return keys;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw refusal(path, (cause as Error).message, 'Check the path.', cause);
  }
}

function refusal(path: string, got: string, advice: string, cause?: unknown): AppError {
  return new AppError('invalid_config', `Expected API keys in ${path}, got ${got}. ${advice}`, { cause });
}
