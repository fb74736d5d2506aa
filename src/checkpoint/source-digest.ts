/**
 * The content of weight files as sha256. Hashing a large model takes longer than loading it, so digests are
 * remembered beside the cache with the state of the file that they belong to.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import { systemErrorCode } from './file-io.ts';
import { throwIfAborted } from './throw-if-aborted.ts';

const fileStateSchema = z.object({ path: z.string(), size: z.number(), mtimeMs: z.number(), ctimeMs: z.number() });

/** What changes when a file is written: enough to trust a digest again. */
export type FileState = z.infer<typeof fileStateSchema>;

const memoSchema = z.array(fileStateSchema.extend({ sha256: z.string().length(64) }));

export interface SourceDigest {
  readonly state: FileState;
  /** Hexadecimal; null when it is not known and the file must be read. */
  readonly sha256: string | null;
}

/** @throws AppError `invalid_checkpoint` when the file is gone */
export async function fileState(path: string): Promise<FileState> {
  try {
    const { size, mtimeMs, ctimeMs } = await stat(path);
    return { path, size, mtimeMs, ctimeMs };
  } catch (error) {
    throw unreadable(path, error);
  }
}

export function sameState(a: FileState, b: FileState): boolean {
  return a.path === b.path && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
}

/** The state of each file, with the digest that `memoFile` remembers for just that state. */
export async function recallDigests(files: readonly string[], memoFile: string): Promise<readonly SourceDigest[]> {
  const memo = await readMemo(memoFile);
  const states = await Promise.all(files.map(fileState));
  return states.map((state) => ({ state, sha256: memo.find((known) => sameState(known, state))?.sha256 ?? null }));
}

async function readMemo(memoFile: string): Promise<z.infer<typeof memoSchema>> {
  try {
    return memoSchema.parse(JSON.parse(await readFile(memoFile, 'utf8')));
  } catch {
    // No memo, a torn one or one of another version: the files are read again.
    return [];
  }
}

/** Keeps digests for the next start. A place that cannot be written costs time then, and nothing else. */
export async function rememberDigests(memoFile: string, digests: readonly SourceDigest[]): Promise<void> {
  const temporary = `${memoFile}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeFile(temporary, JSON.stringify(digests.map(({ state, sha256 }) => ({ ...state, sha256 }))));
    await rename(temporary, memoFile);
  } catch {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

/**
 * Hexadecimal sha256 of a whole file.
 *
 * @param onBytes told how many bytes were read since the last call
 */
export async function hashFile(
  path: string,
  onBytes: (count: number) => void,
  signal: AbortSignal | undefined,
): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      throwIfAborted(signal);
      hash.update(chunk);
      onBytes(chunk.length);
    }
  } catch (error) {
    throw unreadable(path, error);
  }
  return hash.digest('hex');
}

function unreadable(path: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError(
    'invalid_checkpoint',
    `expected to read weights from ${path}, got ${systemErrorCode(error)}; leave the files in place while the model is in use`,
    { cause: error },
  );
}
