import { open } from 'node:fs/promises';
import { readFully } from './file-io.ts';
import type { TensorSink } from './safetensors-writer.ts';
import type { TensorLocation } from './tensor-location.ts';
import { throwIfAborted } from './throw-if-aborted.ts';

const CHUNK_BYTES = 1 << 22;

/** Hands the bytes of a stored tensor to `sink`, as they are, a bounded number at a time. */
export async function copyTensor(
  name: string,
  { file, offset, byteLength }: TensorLocation,
  sink: TensorSink,
  signal: AbortSignal | undefined,
): Promise<void> {
  await using handle = await open(file, 'r');
  for (let done = 0; done < byteLength; done += CHUNK_BYTES) {
    throwIfAborted(signal);
    const bytes = new Uint8Array(Math.min(CHUNK_BYTES, byteLength - done));
    await readFully(handle, bytes, offset + done, file);
    await sink(name, bytes);
  }
}
