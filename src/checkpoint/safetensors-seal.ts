/**
 * The seal of a file: a digest of the header and of both edges of each tensor, kept in the header itself.
 * It tells a complete file from a torn one without reading all of it.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { readFully } from './file-io.ts';
import { readHeaderOf, type SafetensorsHeader } from './safetensors.ts';

export const SEAL_KEY = 'seal';
/** What the header holds where the seal goes while the seal is computed. */
export const EMPTY_SEAL = '0'.repeat(64);

/** Bytes at the beginning and at the end of each tensor that the seal covers. */
const EDGE_BYTES = 4096;

/** Place of the 64 characters of the seal in the header JSON, which begins with the metadata. */
function sealPosition(headerBytes: Uint8Array): number {
  const key = `"${SEAL_KEY}":"`;
  const at = Buffer.from(headerBytes.buffer, headerBytes.byteOffset, headerBytes.byteLength).indexOf(key);
  return at < 0 ? -1 : at + key.length;
}

/** The seal that the file should have, whatever seal it has now. */
async function computeSeal(handle: FileHandle, header: SafetensorsHeader): Promise<string> {
  const blank = Buffer.from(header.headerBytes);
  blank.write(EMPTY_SEAL, sealPosition(blank), 'latin1');
  const hash = createHash('sha256').update(blank);
  for (const tensor of header.tensors.values()) {
    const edge = new Uint8Array(Math.min(EDGE_BYTES, tensor.byteLength));
    await readFully(handle, edge, tensor.offset, header.file);
    hash.update(edge);
    await readFully(handle, edge, tensor.offset + tensor.byteLength - edge.byteLength, header.file);
    hash.update(edge);
  }
  return hash.digest('hex');
}

/** Puts the seal into a file whose header has room for it (`EMPTY_SEAL`) and whose data is complete. */
export async function sealFile(handle: FileHandle, file: string): Promise<void> {
  const header = await readHeaderOf(handle, file);
  const seal = await computeSeal(handle, header);
  await handle.write(seal, 8 + sealPosition(header.headerBytes), 'latin1');
}

/**
 * The header of a sealed file.
 *
 * @returns null when the file has no seal or a wrong one
 * @throws AppError `invalid_checkpoint` when it is no complete safetensors file; a system error when it cannot be read
 */
export async function readSealedHeader(file: string): Promise<SafetensorsHeader | null> {
  await using handle = await open(file, 'r');
  const header = await readHeaderOf(handle, file);
  const seal = header.metadata[SEAL_KEY];
  if (seal?.length !== EMPTY_SEAL.length) return null;
  return (await computeSeal(handle, header)) === seal ? header : null;
}
