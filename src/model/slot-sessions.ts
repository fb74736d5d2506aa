/** Sessions of one graph for 1, 2, 4, … sequences at once, over the same weights. */
import { doublings } from '../core/doublings.ts';
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
  /** Told that no session could be created for more than so many sequences, and why. */
  readonly onFewer?: (slots: number, error: unknown) => void;
}

/** Each further session costs a few megabytes, as weights and their packed forms are shared. */
export class SlotSessions implements AsyncDisposable {
  readonly #options: SlotSessionsOptions;
  /** Ascending. What could not be created once is not among them: it would fail those who want it again and again. */
  #sizes: readonly number[];
  readonly #loading = new Map<number, Promise<SlotSession & { readonly session: Session }>>();

  #disposed = false;

  constructor(options: SlotSessionsOptions) {
    this.#options = options;
    this.#sizes = doublings(options.maxSlots);
  }

  /** Sequences that the largest session serves. */
  get maxSlots(): number {
    return this.#sizes.at(-1) as number;
  }

  /**
   * The smallest session that serves so many sequences; loaded on first use.
   * @throws Error when there is none, as what {@link maxSlots} says is less
   */
  async serving(sequences: number): Promise<SlotSession> {
    const size = this.#sizes.find((slots) => slots >= sequences);
    if (size === undefined) throw new Error(`Expected at most ${this.maxSlots} sequences at once, got ${sequences}`);
    return await this.#load(size);
  }

  /** Loads the session for so many sequences, or else the largest that can be created. */
  async prepare(sequences: number): Promise<void> {
    for (let sizes: readonly number[] | null = null; sizes !== this.#sizes; ) {
      sizes = this.#sizes;
      // What the smallest one lacks, its step will say.
      await this.serving(Math.min(sequences, this.maxSlots)).catch(() => undefined);
    }
  }

  /** Loads all sizes that can be created, one after the other. */
  async loadAll(): Promise<void> {
    for (const size of this.#sizes) {
      if (this.#disposed) return;
      await this.prepare(size);
    }
  }

  #load(slots: number): Promise<SlotSession & { readonly session: Session }> {
    let loading = this.#loading.get(slots);
    if (loading === undefined) {
      loading = this.#create(slots);
      this.#loading.set(slots, loading);
      loading.catch((error: unknown) => {
        this.#loading.delete(slots);
        this.#giveUp(slots, error);
      });
    }
    return loading;
  }

  #giveUp(slots: number, error: unknown): void {
    const before = this.maxSlots;
    const left = this.#sizes.filter((size) => size < slots || this.#loading.has(size));
    if (left.length === 0 || this.#disposed) return;
    this.#sizes = left;
    if (this.maxSlots < before) this.#options.onFewer?.(this.maxSlots, error);
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
