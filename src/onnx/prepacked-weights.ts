import { DisposedError } from '../core/disposed-error.ts';
import { type Handle, make } from './api.ts';
import { countCreated, countReleased } from './live-objects.ts';
import type { OnnxRuntime } from './runtime.ts';

/** Weights rearranged for the kernels, shared by all sessions created with it and with the same initializer tensors. */
export class PrepackedWeights implements Disposable {
  readonly #runtime: OnnxRuntime;
  #handle: Handle | null;

  constructor(runtime: OnnxRuntime) {
    this.#runtime = runtime;
    this.#handle = make(runtime.api, 'createPrepackedWeightsContainer', [], 'create a container of pre-packed weights');
    countCreated('prepacked-weights');
  }

  /** OrtPrepackedWeightsContainer*. */
  get handle(): Handle {
    if (this.#handle === null) throw new DisposedError('A container of pre-packed weights');
    return this.#handle;
  }

  /** The sessions created with it must be gone. */
  [Symbol.dispose](): void {
    if (this.#handle === null) return;
    this.#runtime.api.releasePrepackedWeightsContainer(this.#handle);
    this.#handle = null;
    countReleased('prepacked-weights');
  }
}
