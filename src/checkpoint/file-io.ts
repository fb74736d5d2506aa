/** Reads and writes that finish or throw. */
import type { FileHandle } from 'node:fs/promises';
import { AppError } from '../core/app-error.ts';

/** One system call moves at most 2^31 - 1 bytes. */
const LARGEST_CALL = 1 << 30;

/** The bytes behind a typed array; a view, not a copy. */
export function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Fills `target` from `position`. Throws `invalid_checkpoint` where the file ends early. */
export async function readFully(handle: FileHandle, target: Uint8Array, position: number, file: string): Promise<void> {
  let done = 0;
  while (done < target.byteLength) {
    const length = Math.min(target.byteLength - done, LARGEST_CALL);
    const { bytesRead } = await handle.read(target, done, length, position + done);
    if (bytesRead === 0) {
      throw new AppError(
        'invalid_checkpoint',
        `expected ${target.byteLength} bytes at offset ${position} of ${file}, got ${done} before its end; copy the file again`,
      );
    }
    done += bytesRead;
  }
}

/** Writes all of `bytes` at `position`. */
export async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.byteLength) {
    const length = Math.min(bytes.byteLength - done, LARGEST_CALL);
    const { bytesWritten } = await handle.write(bytes, done, length, position + done);
    done += bytesWritten;
  }
}

/** The `code` of a system error (`ENOENT`), else the error as text. */
export function systemErrorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return String(error);
}
