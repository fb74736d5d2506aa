/** Files as memory: weights are used where they lie on disk, and processes that serve the same model share the pages. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import koffi from 'koffi';
import { DisposedError } from '../core/disposed-error.ts';
import type { Handle } from './api.ts';
import { type ElementType, elementBytes, viewElements } from './element-type.ts';
import { libc } from './libc.ts';
import { countCreated, countReleased } from './live-objects.ts';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';
import type { OnnxRuntime } from './runtime.ts';
import { elementCount, OwnedTensor } from './tensor.ts';

interface Memory {
  readonly address: Handle;
  release(): void;
}

/** A read-only mapping of a whole file. Tensors made from it must be disposed of before it. */
export class MappedFile implements Disposable {
  readonly path: string;
  readonly byteLength: number;
  #memory: Memory | null;

  constructor(runtime: OnnxRuntime, path: string) {
    const file = openSync(path, 'r');
    try {
      this.path = path;
      this.byteLength = fstatSync(file).size;
      this.#memory =
        process.platform === 'win32' ? readWhole(runtime, file, this.byteLength) : mapWhole(file, this.byteLength, path);
    } finally {
      closeSync(file);
    }
    countCreated('mapped-file');
  }

  /**
   * A tensor over bytes of the file, in place. Where the offset does not suit the element type, which kernels need,
   * the bytes are copied.
   */
  tensor<T extends ElementType>(runtime: OnnxRuntime, type: T, shape: readonly number[], offset: number): OwnedTensor<T> {
    if (this.#memory === null) throw new DisposedError(`The mapping of ${this.path}`);
    const bytes = elementCount(shape) * elementBytes(type);
    if (offset < 0 || offset + bytes > this.byteLength) {
      throw new OnnxRuntimeError(
        'INVALID_ARGUMENT',
        `Expected bytes within ${this.byteLength} of ${this.path}, got ${offset}..${offset + bytes}`,
      );
    }
    const address = this.#memory.address + BigInt(offset);
    if (offset % elementBytes(type) === 0) return OwnedTensor.wrap(runtime, type, shape, address);
    // In memory of JavaScript's: a session takes no weights that ONNX Runtime allocated.
    return OwnedTensor.over(runtime, type, shape, viewElements(type, koffi.view(address, bytes).slice(0)));
  }

  [Symbol.dispose](): void {
    if (this.#memory === null) return;
    this.#memory.release();
    this.#memory = null;
    countReleased('mapped-file');
  }
}

type MemoryMap = (address: null, length: number, protection: number, flags: number, file: number, offset: number) => Handle;
let posix: { readonly map: MemoryMap; readonly unmap: (address: Handle, length: number) => number } | undefined;

function mapWhole(file: number, length: number, path: string): Memory {
  if (posix === undefined) {
    posix = {
      map: libc().func('mmap', 'void *', ['void *', 'size_t', 'int', 'int', 'int', 'int64_t']) as unknown as MemoryMap,
      unmap: libc().func('munmap', 'int', ['void *', 'size_t']) as never,
    };
  }
  const { map, unmap } = posix;
  const READ = 1;
  const PRIVATE = 2;
  const address = map(null, length, READ, PRIVATE, file, 0);
  if (address === null || BigInt.asIntN(64, address) === -1n) {
    throw new OnnxRuntimeError('FAIL', `Cannot map ${path} (${length} bytes) into memory`);
  }
  return { address, release: () => void unmap(address, length) };
}

/** Windows has no mmap; the file is read into memory of its own. */
function readWhole(runtime: OnnxRuntime, file: number, length: number): Memory {
  const tensor = OwnedTensor.allocate(runtime, 'u8', [length]);
  const CHUNK = 1 << 26;
  for (let offset = 0; offset < length; )
    offset += readSync(file, tensor.data, offset, Math.min(CHUNK, length - offset), offset);
  return { address: koffi.address(tensor.data), release: () => tensor[Symbol.dispose]() };
}
