/** A tensor in memory that V8 never moves, and JavaScript's view of it. */
import koffi from 'koffi';
import { DisposedError } from '../core/disposed-error.ts';
import { type Handle, make, type Out } from './api.ts';
import { copyBytes } from './copy-bytes.ts';
import { discardPages } from './discard-pages.ts';
import { type ElementType, type ElementView, elementBytes, onnxElementType, viewElements } from './element-type.ts';
import { countCreated, countReleased } from './live-objects.ts';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';
import type { OnnxRuntime } from './runtime.ts';

/** Where the elements lie. `device` memory has no JavaScript view. */
export type Placement = 'host' | 'device';

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Owns an OrtValue. Views made by {@link OwnedTensor.reshaped} share the memory and must be disposed of before it. */
export class OwnedTensor<T extends ElementType = ElementType> implements Disposable {
  readonly type: T;
  readonly shape: readonly number[];
  readonly placement: Placement;
  readonly #runtime: OnnxRuntime;
  readonly #address: Handle;
  #handle: Handle | null;
  #data: ElementView<T> | undefined;

  private constructor(runtime: OnnxRuntime, handle: Handle, type: T, shape: readonly number[], placement: Placement) {
    this.#runtime = runtime;
    this.#handle = handle;
    this.type = type;
    this.shape = shape;
    this.placement = placement;
    const out: Out = [null];
    runtime.api.getTensorMutableData(handle, out);
    this.#address = out[0] ?? 0n;
    countCreated('tensor');
  }

  /** Allocates uninitialised memory; on the host unless `allocator` (an OrtAllocator*) says otherwise. */
  static allocate<T extends ElementType>(
    runtime: OnnxRuntime,
    type: T,
    shape: readonly number[],
    allocator?: { readonly handle: Handle; readonly placement: Placement },
  ): OwnedTensor<T> {
    const handle = make(
      runtime.api,
      'createTensorAsOrtValue',
      [allocator?.handle ?? runtime.hostAllocator, toDims(shape), shape.length, onnxElementType(type)],
      `allocate a tensor of ${type}[${shape}]`,
    );
    return new OwnedTensor(runtime, handle, type, shape, allocator?.placement ?? 'host');
  }

  /** Takes over an array of JavaScript's: the tensor's memory is the array's, and its contents stay writable. */
  static over<T extends ElementType>(
    runtime: OnnxRuntime,
    type: T,
    shape: readonly number[],
    elements: ElementView<T>,
  ): OwnedTensor<T> {
    // V8 may move small arrays that it keeps on its own heap; larger ones have a fixed backing store.
    const SAFE_BYTES = 1024;
    const fixed =
      elements.byteLength >= SAFE_BYTES
        ? elements
        : viewElements(type, new ArrayBuffer(SAFE_BYTES)).subarray(0, elements.length);
    if (fixed !== elements) (fixed as { set(source: ArrayLike<unknown>): void }).set(elements);
    const tensor = OwnedTensor.#over(runtime, type, shape, koffi.address(fixed), runtime.hostMemory, 'host');
    tensor.#data = fixed as ElementView<T>;
    return tensor;
  }

  /**
   * Wraps host memory that somebody else owns and keeps alive.
   * @param address of the first element
   */
  static wrap<T extends ElementType>(runtime: OnnxRuntime, type: T, shape: readonly number[], address: Handle): OwnedTensor<T> {
    return OwnedTensor.#over(runtime, type, shape, address, runtime.hostMemory, 'host');
  }

  static #over<T extends ElementType>(
    runtime: OnnxRuntime,
    type: T,
    shape: readonly number[],
    address: Handle,
    memory: Handle,
    placement: Placement,
  ): OwnedTensor<T> {
    const handle = make(
      runtime.api,
      'createTensorWithDataAsOrtValue',
      [memory, address, elementCount(shape) * elementBytes(type), toDims(shape), shape.length, onnxElementType(type)],
      `wrap a tensor of ${type}[${shape}]`,
    );
    return new OwnedTensor(runtime, handle, type, shape, placement);
  }

  /** OrtValue*. */
  get handle(): Handle {
    if (this.#handle === null) throw new DisposedError('A tensor');
    return this.#handle;
  }

  get disposed(): boolean {
    return this.#handle === null;
  }

  get byteLength(): number {
    return elementCount(this.shape) * elementBytes(this.type);
  }

  /** The elements in place: writing here writes the tensor. Do not keep it past the tensor's life. */
  get data(): ElementView<T> {
    if (this.#handle === null) throw new DisposedError('A tensor');
    if (this.placement === 'device') throw new OnnxRuntimeError('FAIL', 'A tensor in device memory has no JavaScript view');
    this.#data ??= viewElements(this.type, koffi.view(this.#address, this.byteLength));
    return this.#data;
  }

  /** A tensor over the leading elements of this one's memory. */
  reshaped(shape: readonly number[]): OwnedTensor<T> {
    if (this.#handle === null) throw new DisposedError('A tensor');
    if (elementCount(shape) > elementCount(this.shape)) {
      throw new OnnxRuntimeError('INVALID_ARGUMENT', `Expected at most ${elementCount(this.shape)} elements, got [${shape}]`);
    }
    if (this.placement === 'device') throw new OnnxRuntimeError('NOT_IMPLEMENTED', 'Views of device memory are not available');
    return OwnedTensor.#over(this.#runtime, this.type, shape, this.#address, this.#runtime.hostMemory, this.placement);
  }

  /** Copies `count` elements from another tensor on the host, from the same place in both. */
  copyRange(source: OwnedTensor<T>, offset: number, count: number): void {
    const bytes = count * elementBytes(this.type);
    copyBytes(this.#addressOf(offset, count), source.#addressOf(offset, count), bytes);
  }

  /** Of `count` elements from `offset` on. */
  #addressOf(offset: number, count: number): Handle {
    if (this.#handle === null) throw new DisposedError('A tensor');
    if (this.placement === 'device') throw new OnnxRuntimeError('FAIL', 'A tensor in device memory cannot be copied from here');
    if (offset < 0 || count < 0 || offset + count > elementCount(this.shape)) {
      throw new OnnxRuntimeError(
        'INVALID_ARGUMENT',
        `Expected a part of [${this.shape}], got ${count} elements from ${offset}`,
      );
    }
    return this.#address + BigInt(offset * elementBytes(this.type));
  }

  /** Gives the memory of elements that are no longer needed back to the system, where that can do so. They then hold anything. */
  discard(): void {
    if (this.#handle !== null && this.placement === 'host') discardPages(this.#address, this.byteLength);
  }

  [Symbol.dispose](): void {
    if (this.#handle === null) return;
    this.#runtime.api.releaseValue(this.#handle);
    this.#handle = null;
    this.#data = undefined;
    countReleased('tensor');
  }
}

function toDims(shape: readonly number[]): BigInt64Array {
  return BigInt64Array.from(shape, BigInt);
}
