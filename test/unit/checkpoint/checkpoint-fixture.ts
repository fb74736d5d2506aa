/** Safetensors files written by hand, so that the reader is not tested against our own writer. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export interface FixtureTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
}

/** A folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'blockdraft-checkpoint-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A whole file: eight bytes of length, the header as given, the data. */
export function rawSafetensors(header: string, data: Uint8Array = new Uint8Array()): Buffer {
  const json = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.byteLength));
  return Buffer.concat([length, json, data]);
}

/** A valid file. `shift` moves the data off its alignment of 64 bytes. */
export function safetensors(
  tensors: Readonly<Record<string, FixtureTensor>>,
  metadata?: Readonly<Record<string, string>>,
  shift = 0,
): Buffer {
  const header: Record<string, unknown> = metadata === undefined ? {} : { __metadata__: metadata };
  const parts: Buffer[] = [];
  let end = 0;
  for (const [name, { dtype, shape, data }] of Object.entries(tensors)) {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.byteLength] };
    parts.push(bytes);
    end += bytes.byteLength;
  }
  const json = JSON.stringify(header);
  const padded = json.padEnd(Math.ceil((json.length + 8) / 64) * 64 - 8 + shift);
  return rawSafetensors(padded, Buffer.concat(parts));
}

export function f32(shape: readonly number[], data: Float32Array): FixtureTensor {
  return { dtype: 'F32', shape, data };
}

/** Values that look like weights: smooth, of both signs, the same in each run. */
export function weights(count: number, seed = 1): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(seed * 1000 + i * 0.7) * Math.cos(i * 0.113 + seed) * 0.2);
}

/** A folder with one `model.safetensors`. */
export async function modelFolder(
  tensors: Readonly<Record<string, FixtureTensor>>,
  metadata?: Readonly<Record<string, string>>,
  shift = 0,
): Promise<string> {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'model.safetensors'), safetensors(tensors, metadata, shift));
  return folder;
}
