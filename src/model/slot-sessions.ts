/** Sessions of one graph for 1, 2, 4, … sequences at once, over the same weights. */
import type { BuiltGraph } from '../graph/graph-builder.ts';
import type { Device } from '../onnx/device.ts';
import type { IoBinding } from '../onnx/io-binding.ts';
import type { PrepackedWeights } from '../onnx/prepacked-weights.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { Session } from '../onnx/session.ts';
import type { OwnedTensor } from '../onnx/tensor.ts';

export interface SlotSession {
  readonly slots: number;
  readonly binding: IoBinding;
}

export interface SlotSessionsOptions {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  /** The tensor of a weight that the graph declares. */
  readonly weight: (name: string) => OwnedTensor;
  readonly prepacked: PrepackedWeights;
  readonly maxSlots: number;
  readonly build: (slots: number) => BuiltGraph;
}

/** Each further session costs a few megabytes, as weights and their packed forms are shared. */
export class SlotSessions implements AsyncDisposable {
  readonly #options: SlotSessionsOptions;
  readonly #sizes: readonly number[];
  readonly #loading = new Map<number, Promise<SlotSession & { readonly session: Session }>>();

  #disposed = false;

  constructor(options: SlotSessionsOptions) {
    this.#options = options;
    const sizes: number[] = [];
    for (let slots = 1; slots < options.maxSlots; slots *= 2) sizes.push(slots);
    this.#sizes = [...sizes, options.maxSlots];
  }

  /** The smallest session that serves so many sequences; loaded on first use. */
  serving(sequences: number): Promise<SlotSession> {
    return this.#load(this.#sizes.find((size) => size >= sequences) ?? this.#options.maxSlots);
  }

  /** Loads all sizes, one after the other. */
  async loadAll(): Promise<void> {
    for (const size of this.#sizes) {
      if (this.#disposed) return;
      await this.#load(size);
    }
  }

  #load(slots: number): Promise<SlotSession & { readonly session: Session }> {
    let loading = this.#loading.get(slots);
    if (loading === undefined) {
      loading = this.#create(slots);
      this.#loading.set(slots, loading);
      // What found no memory may find some the next time.
      loading.catch(() => this.#loading.delete(slots));
    }
    return loading;
  }

  async #create(slots: number): Promise<SlotSession & { readonly session: Session }> {
    const { runtime, device, weight, prepacked, build } = this.#options;
    const graph = build(slots);
    const initializers = new Map(graph.weights.map(({ name }) => [name, weight(name)]));
    const session = await Session.create(runtime, graph.model, { initializers, prepacked, device });
    return { slots, session, binding: session.createBinding() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    for (const result of await Promise.allSettled(this.#loading.values())) {
      if (result.status === 'rejected') continue;
      result.value.binding[Symbol.dispose]();
      result.value.session[Symbol.dispose]();
    }
    this.#loading.clear();
  }
}
