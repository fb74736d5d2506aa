/** JSON files of a model folder, checked against a schema. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { AppError } from '../core/app-error.ts';

/** @throws AppError `invalid_checkpoint` that names the file, and the key when one is at fault */
export function readJson<T>(file: string, schema: z.ZodType<T>): T {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new AppError('invalid_checkpoint', `Cannot read ${file}: ${(cause as Error).message}; check the path`, { cause });
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new AppError('invalid_checkpoint', `Expected JSON in ${file}: ${(cause as Error).message}`, { cause });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const key = issue?.path.join('.');
  throw new AppError('invalid_checkpoint', `${file}: ${key ? `${key}: ` : ''}${issue?.message}`, { cause: parsed.error });
}
