/** Fetches one file beside its place, going on where an earlier attempt ended. */
import { type FileHandle, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { addFile, startDigest } from './content-digest.ts';
import type { HubFile } from './hub-client.ts';

export interface DownloadOptions {
  readonly file: HubFile;
  readonly folder: string;
  /** Asks for the content from a byte on. */
  readonly request: (fromByte: number) => Promise<Response>;
  /** Told of bytes that are there: new ones, or such as an earlier attempt left. Negative when some have to be fetched again. */
  readonly onBytes: (count: number) => void;
}

/** Of any content: what is left of them when a pull has ended is of other revisions. */
export const PART_NAME = /^\..+\.[0-9a-f]{16}\.part$/;

/**
 * Makes a part file in `folder` whole, from what there is of it and what the hub adds to it. The part is named after the
 * content, so that it is never continued with another one.
 *
 * @returns the part, to be renamed to `folder/path`; null when that has the digest already
 * @throws AppError `invalid_checkpoint` when the content is not what the hub said it would be; whatever `request` throws
 */
export async function downloadFile({ file, folder, request, onBytes }: DownloadOptions): Promise<string | null> {
  const final = join(folder, file.path);
  if ((await sizeOf(final)) === file.bytes && (await digestOf(file, final, onBytes)) === file.digest.value) return null;
  const part = join(folder, `.${file.path}.${file.digest.value.slice(0, 16)}.part`);
  const hash = startDigest(file);
  let done = Math.min((await sizeOf(part)) ?? 0, file.bytes);
  await using handle = await open(part, done === 0 ? 'w+' : 'r+');
  await handle.truncate(done);
  if (done > 0) await addFile(hash, part, onBytes);

  if (done < file.bytes) {
    const response = await request(done);
    if (done > 0 && !continues(response, done)) {
      // The server begins anew, and so must the file.
      await response.body?.cancel();
      await handle.truncate(0);
      onBytes(-done);
      await rm(part);
      return downloadFile({ file, folder, request: () => request(0), onBytes });
    }
    done += await append(handle, response, done, file, (bytes) => {
      hash.update(bytes);
      onBytes(bytes.byteLength);
    });
  }
  const found = hash.digest('hex');
  if (done !== file.bytes || found !== file.digest.value) {
    // Bytes that are still to come are no reason to throw away those that are there.
    if (done >= file.bytes) await rm(part, { force: true });
    throw new AppError(
      'invalid_checkpoint',
      done === file.bytes
        ? `Expected ${file.path} with the ${file.digest.kind} digest ${file.digest.value}, got ${found}; fetch it again`
        : `Expected ${file.bytes} bytes of ${file.path}, got ${done}; fetch it again to go on from there`,
    );
  }
  return part;
}

/** Whether the body is what follows the bytes that are there. */
function continues(response: Response, fromByte: number): boolean {
  return response.status === 206 && (response.headers.get('content-range') ?? '').startsWith(`bytes ${fromByte}-`);
}

/** @returns bytes written; no more than the file has */
async function append(
  handle: FileHandle,
  response: Response,
  from: number,
  file: HubFile,
  onChunk: (bytes: Uint8Array) => void,
): Promise<number> {
  let done = 0;
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array;
    if (from + done + bytes.byteLength > file.bytes) {
      throw new AppError('invalid_checkpoint', `Expected ${file.bytes} bytes of ${file.path}, got more; fetch it again`);
    }
    for (let written = 0; written < bytes.byteLength; ) {
      const { bytesWritten } = await handle.write(bytes, written, bytes.byteLength - written, from + done + written);
      written += bytesWritten;
    }
    onChunk(bytes);
    done += bytes.byteLength;
  }
  return done;
}

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then(
    ({ size }) => size,
    () => null,
  );
}

async function digestOf(file: HubFile, path: string, onBytes: (count: number) => void): Promise<string> {
  const hash = startDigest(file);
  let read = 0;
  await addFile(hash, path, (count) => {
    read += count;
    onBytes(count);
  });
  const found = hash.digest('hex');
  if (found !== file.digest.value) onBytes(-read);
  return found;
}
