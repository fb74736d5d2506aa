/** Weights of a model as tensors over their files. */
import { DisposedError } from '../core/disposed-error.ts';
import type { ElementType } from './element-type.ts';
import { MappedFile } from './mapped-file.ts';
import { OnnxRuntimeError } from './onnx-runtime-error.ts';
import type { OnnxRuntime } from './runtime.ts';
import type { OwnedTensor } from './tensor.ts';

/** Where a weight lies; `dtype` as safetensors writes it. */
export interface WeightLocation {
  readonly file: string;
  /** Bytes from the beginning of the file. */
  readonly offset: number;
  readonly dtype: string;
  readonly shape: readonly number[];
}

const ELEMENT_TYPES: Readonly<Record<string, ElementType>> = {
  F32: 'f32',
  F16: 'f16',
  BF16: 'bf16',
  U8: 'u8',
  I8: 'i8',
  I32: 'i32',
  I64: 'i64',
  BOOL: 'bool',
};

/** Maps the files that are asked for, once each. Sessions that use the tensors must be gone before it is disposed of. */
export class WeightTensors implements Disposable {
  readonly #runtime: OnnxRuntime;
  readonly #locations: ReadonlyMap<string, WeightLocation>;
  readonly #files = new Map<string, MappedFile>();
  readonly #tensors = new Map<string, OwnedTensor>();
  #disposed = false;

  constructor(runtime: OnnxRuntime, locations: ReadonlyMap<string, WeightLocation>) {
    this.#runtime = runtime;
    this.#locations = locations;
  }

  has(name: string): boolean {
    return this.#tensors.has(name) || this.#locations.has(name);
  }

  /** Adds a tensor that is computed rather than read, and takes it over. */
  add(name: string, tensor: OwnedTensor): void {
    this.#refuseDisposed();
    this.#tensors.set(name, tensor);
  }

  /** @throws OnnxRuntimeError when there is no such weight */
  get(name: string): OwnedTensor {
    this.#refuseDisposed();
    const known = this.#tensors.get(name);
    if (known !== undefined) return known;
    const location = this.#locations.get(name);
    if (location === undefined) throw new OnnxRuntimeError('INVALID_ARGUMENT', `There is no weight ${name}`);
    const type = ELEMENT_TYPES[location.dtype];
    if (type === undefined) throw new OnnxRuntimeError('INVALID_ARGUMENT', `Weight ${name} has the type ${location.dtype}`);
    let file = this.#files.get(location.file);
    if (file === undefined) {
      file = new MappedFile(this.#runtime, location.file);
      this.#files.set(location.file, file);
    }
    const tensor = file.tensor(this.#runtime, type, location.shape, location.offset);
    this.#tensors.set(name, tensor);
    return tensor;
  }

  #refuseDisposed(): void {
    // Mapping the files anew would bring back what nobody is left to dispose of.
    if (this.#disposed) throw new DisposedError('A set of weights');
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const tensor of this.#tensors.values()) tensor[Symbol.dispose]();
    this.#tensors.clear();
    for (const file of this.#files.values()) file[Symbol.dispose]();
    this.#files.clear();
  }
}
