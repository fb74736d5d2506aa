import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { HubFile } from './hub-client.ts';

/** A hash that comes to the file's digest when it is given the whole content. */
export function startDigest({ digest, bytes }: HubFile): Hash {
  return digest.kind === 'sha256' ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Adds the content of a local file. */
export async function addFile(hash: Hash, path: string, onBytes: (count: number) => void): Promise<void> {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hash.update(chunk as Buffer);
    onBytes((chunk as Buffer).byteLength);
  }
}
