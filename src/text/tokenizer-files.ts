/** Reads the JSON files of a tokenizer folder. */
import { readFile } from 'node:fs/promises';
import { AppError } from '../core/app-error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * @returns the file's text, or null when there is no such file
 * @throws AppError `invalid_checkpoint` when it exists and cannot be read
 */
export async function readOptionalFile(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return null;
    throw new AppError('invalid_checkpoint', `expected to read ${path}, got an error; check its permissions`, { cause });
  }
}

/** @throws AppError `invalid_checkpoint` when the text is not a JSON object */
export function parseJsonObject(text: string, path: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new AppError(
      'invalid_checkpoint',
      `expected JSON in ${path}, got text that does not parse; download the file again`,
      { cause },
    );
  }
  if (!isJsonObject(value)) {
    throw new AppError('invalid_checkpoint', `expected a JSON object in ${path}, got another value; download the file again`);
  }
  return value;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text of a special token in tokenizer_config.json, written as a string or as an object with `content`; null when there is none. */
export function specialTokenText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return isJsonObject(value) && typeof value['content'] === 'string' ? value['content'] : null;
}
