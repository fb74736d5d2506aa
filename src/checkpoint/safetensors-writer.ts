/** Writes safetensors files whose tensors are known before their values. */
import { randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../core/app-error.ts';
import { writeFully } from './file-io.ts';
import { PADDING_PREFIX } from './safetensors.ts';
import { EMPTY_SEAL, SEAL_KEY, sealFile } from './safetensors-seal.ts';
import { elementCount, formatShape, tensorBytes } from './tensor-dtype.ts';
import type { TensorLocation, TensorSpec } from './tensor-location.ts';

/** Tensor data begins at multiples of this in the file: a cache line, and the widest vector load. */
const ALIGNMENT = 64;

/** A temporary file that nobody wrote to for this long is what a crash left. */
const STALE_MS = 3_600_000;

export interface SafetensorsPlan {
  readonly metadata: Readonly<Record<string, string>>;
  readonly tensors: readonly TensorSpec[];
  /** Adds the seal that `readSealedHeader` checks. */
  readonly sealed?: boolean;
}

/** Appends `bytes` to the tensor `name`. Tensors may be written in any order, each from its beginning to its end. */
export type TensorSink = (name: string, bytes: Uint8Array) => Promise<void>;

interface Layout {
  /** Length, JSON and padding: everything before the data. */
  readonly head: Buffer;
  readonly fileBytes: number;
  /** Offsets are in the file. */
  readonly tensors: ReadonlyMap<string, Omit<TensorLocation, 'file'>>;
}

function layOut(plan: SafetensorsPlan): Layout {
  const metadata = plan.sealed === true ? { [SEAL_KEY]: EMPTY_SEAL, ...plan.metadata } : plan.metadata;
  const entries: [string, unknown][] = [['__metadata__', metadata]];
  const placed: { name: string; spec: TensorSpec; begin: number; byteLength: number }[] = [];
  let end = 0;
  for (const spec of plan.tensors) {
    const byteLength = tensorBytes(spec.dtype, elementCount(spec.shape));
    if (byteLength === null) {
      throw new AppError('internal', `expected a size in bytes for ${spec.name}, got ${spec.dtype} ${formatShape(spec.shape)}`);
    }
    const begin = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
    if (begin > end) {
      entries.push([`${PADDING_PREFIX}${entries.length}`, { dtype: 'U8', shape: [begin - end], data_offsets: [end, begin] }]);
    }
    end = begin + byteLength;
    entries.push([spec.name, { dtype: spec.dtype, shape: spec.shape, data_offsets: [begin, end] }]);
    placed.push({ name: spec.name, spec, begin, byteLength });
  }
  const json = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const dataStart = Math.ceil((8 + json.byteLength) / ALIGNMENT) * ALIGNMENT;
  const head = Buffer.alloc(dataStart, ' ');
  head.writeBigUInt64LE(BigInt(dataStart - 8));
  json.copy(head, 8);
  const tensors = new Map(
    placed.map(({ name, spec, begin, byteLength }) => [
      name,
      { offset: dataStart + begin, byteLength, dtype: spec.dtype, shape: spec.shape },
    ]),
  );
  if (tensors.size !== plan.tensors.length)
    throw new AppError('internal', 'expected each tensor once in a file, got one twice');
  return { head, fileBytes: dataStart + end, tensors };
}

/**
 * Writes `file` at once or not at all: to a temporary file beside it, flushed to the disk and then renamed.
 * Several processes may write the same file; the last one to finish wins.
 *
 * @param produce hands every byte of every planned tensor to the sink
 * @returns where each tensor is
 * @throws what `produce` throws, system errors, and AppError `internal` when a tensor got too few or too many bytes
 */
export async function writeSafetensors(
  file: string,
  plan: SafetensorsPlan,
  produce: (sink: TensorSink) => Promise<void>,
): Promise<ReadonlyMap<string, TensorLocation>> {
  const layout = layOut(plan);
  const folder = dirname(file);
  await removeStale(folder, basename(file));
  const temporary = join(folder, `.${basename(file)}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const handle = await open(temporary, 'wx+', 0o644);
    try {
      await writeContent(handle, layout, produce);
      if (plan.sealed === true) await sealFile(handle, temporary);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(folder);
  return new Map([...layout.tensors].map(([name, place]) => [name, { file, ...place }]));
}

async function writeContent(handle: FileHandle, layout: Layout, produce: (sink: TensorSink) => Promise<void>): Promise<void> {
  await handle.truncate(layout.fileBytes);
  await writeFully(handle, layout.head, 0);
  const written = new Map<string, number>();
  await produce(async (name, bytes) => {
    const tensor = layout.tensors.get(name);
    const done = written.get(name) ?? 0;
    if (tensor === undefined) {
      throw new AppError('internal', `expected bytes of a planned tensor, got ${bytes.byteLength} of ${name}`);
    }
    written.set(name, done + bytes.byteLength);
    await writeFully(handle, bytes, tensor.offset + done);
  });
  for (const [name, tensor] of layout.tensors) {
    const done = written.get(name) ?? 0;
    if (done !== tensor.byteLength)
      throw new AppError('internal', `expected ${tensor.byteLength} bytes of ${name}, got ${done}`);
  }
}

async function removeStale(folder: string, name: string): Promise<void> {
  for (const entry of await readdir(folder)) {
    if (!entry.startsWith(`.${name}.`) || !entry.endsWith('.tmp')) continue;
    const path = join(folder, entry);
    const status = await stat(path).catch(() => null);
    if (status !== null && Date.now() - status.mtimeMs > STALE_MS) await rm(path, { force: true });
  }
}

/** Makes the rename itself last; some file systems cannot, and lose nothing else by it. */
async function syncFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, 'r');
    await handle.sync();
  } catch {
    return;
  }
}
