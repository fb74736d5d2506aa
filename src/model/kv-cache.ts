/** What is kept of the sequences: keys and values, which the graph updates in place, and states of fixed size. */
import { AppError } from '../core/app-error.ts';
import { DisposedError } from '../core/disposed-error.ts';
import type { ComputeType } from '../graph/precision.ts';
import { elementBytes } from '../onnx/element-type.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { OwnedTensor } from '../onnx/tensor.ts';
import { type RecurrentShape, RecurrentState, RecurrentTensors } from './recurrent-state.ts';
import { StateNotKeptError } from './state-not-kept-error.ts';

export interface CacheShape {
  /** With keys and values. */
  readonly layers: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Of keys and values; f32 unless given. */
  readonly type?: ComputeType;
  /** Beyond the context, for repeated rows; {@link CachePool.SPARE_POSITIONS} unless given. */
  readonly sparePositions?: number;
  /** Of the layers with a recurrent state, where a model has such. */
  readonly recurrent?: RecurrentShape | null;
}

/** Tensors of one sequence. */
export class CacheTensors implements Disposable {
  /** By layer; [1, kvHeads, capacity, headDim] each. */
  readonly keys: readonly OwnedTensor<ComputeType>[];
  /** By layer; [1, kvHeads, capacity, headDim] each. */
  readonly values: readonly OwnedTensor<ComputeType>[];
  /** Two buffers, which take turns. */
  readonly recurrent: readonly [RecurrentTensors, RecurrentTensors] | null;

  constructor(runtime: OnnxRuntime, shape: CacheShape, capacity: number) {
    const { type = 'f32' } = shape;
    const allocate = () => OwnedTensor.allocate<ComputeType>(runtime, type, [1, shape.kvHeads, capacity, shape.headDim]);
    this.keys = Array.from({ length: shape.layers }, allocate);
    this.values = Array.from({ length: shape.layers }, allocate);
    const { recurrent = null } = shape;
    this.recurrent =
      recurrent === null ? null : [new RecurrentTensors(runtime, recurrent), new RecurrentTensors(runtime, recurrent)];
  }

  /** Bytes that a position takes in all layers. */
  static bytesPerPosition({ layers, kvHeads, headDim, type = 'f32' }: CacheShape): number {
    return 2 * layers * kvHeads * headDim * elementBytes(type);
  }

  copyPositions(source: CacheTensors, positions: number): void {
    const pairs = [...this.keys, ...this.values].map((tensor, i) => [tensor, [...source.keys, ...source.values][i]!] as const);
    for (const [into, from] of pairs) {
      const [, heads, capacity, headDim] = into.shape as [number, number, number, number];
      for (let head = 0; head < heads; head++) into.copyRange(from, head * capacity * headDim, positions * headDim);
    }
  }

  /** Gives back the memory of all positions. */
  discard(): void {
    for (const tensor of [...this.keys, ...this.values]) tensor.discard();
  }

  [Symbol.dispose](): void {
    for (const tensor of [...this.keys, ...this.values, ...(this.recurrent ?? [])]) tensor[Symbol.dispose]();
  }
}

/** A sequence's claim on tensors of the pool. */
export class PooledCache implements Disposable {
  readonly capacity: number;
  /** Null when no layer has one. */
  readonly recurrent: RecurrentState | null;
  readonly #release: (tensors: CacheTensors) => void;
  #tensors: CacheTensors | null;
  #length = 0;

  constructor(tensors: CacheTensors, capacity: number, release: (tensors: CacheTensors) => void) {
    this.#tensors = tensors;
    this.capacity = capacity;
    this.#release = release;
    this.recurrent = tensors.recurrent === null ? null : new RecurrentState(tensors.recurrent);
  }

  get disposed(): boolean {
    return this.#tensors === null;
  }

  get tensors(): CacheTensors {
    if (this.#tensors === null) throw new DisposedError('A sequence cache');
    return this.#tensors;
  }

  /** Positions held. */
  get length(): number {
    return this.#length;
  }

  /**
   * Forgets the positions from `length` on. Keys and values are overwritten later, which costs nothing.
   * @throws StateNotKeptError when a recurrent state cannot follow
   */
  truncate(length: number): void {
    if (length < 0 || length > this.#length) {
      throw new AppError('internal', `Expected a length of 0 to ${this.#length}, got ${length}`);
    }
    this.recurrent?.truncate(length);
    this.#length = length;
  }

  /**
   * Begins with the first positions of another cache of the same pool.
   * @throws StateNotKeptError when there is a recurrent state, and the other's is that of another position
   */
  copyFrom(source: PooledCache, length: number): void {
    if (this.#length !== 0 || length < 0 || length > source.length) {
      throw new AppError('internal', `Expected an empty cache and a length of 0 to ${source.length}, got ${length}`);
    }
    if (this.recurrent !== null && source.recurrent !== null) {
      if (length !== source.length) throw new StateNotKeptError(length, `${source.length} positions`);
      this.recurrent.copyFrom(source.recurrent);
    }
    this.tensors.copyPositions(source.tensors, length);
    this.#length = length;
  }

  /**
   * Counts rows that a step has written.
   * @param recordedFrom where they begin in the step's record, from which a recurrent state is replayed; null: nowhere
   */
  grow(rows: number, recordedFrom: number | null = null): void {
    this.#length += rows;
    this.recurrent?.advance(rows, recordedFrom);
  }

  [Symbol.dispose](): void {
    if (this.#tensors === null) return;
    this.#release(this.#tensors);
    this.#tensors = null;
  }
}

/**
 * Hands out caches. Tensors are made when first needed and then used again and again. A cache takes the memory of the
 * positions that it holds: the system gives out pages on first use, and they are given back when it is disposed of.
 */
export class CachePool implements Disposable {
  /** Beyond the context, one position takes the repeated row of a one-row span. */
  static readonly SPARE_POSITIONS = 1;

  readonly #runtime: OnnxRuntime;
  readonly #shape: CacheShape;
  readonly #capacity: number;
  readonly #limit: number;
  readonly #free: CacheTensors[] = [];
  #made = 0;
  #disposed = false;

  /** @param capacity positions per sequence; @param limit sequences at once */
  constructor(runtime: OnnxRuntime, shape: CacheShape, capacity: number, limit: number) {
    this.#runtime = runtime;
    this.#shape = shape;
    this.#capacity = capacity;
    this.#limit = limit;
  }

  /** @throws AppError `overloaded` */
  open(): PooledCache {
    let tensors = this.#free.pop();
    if (tensors === undefined) {
      if (this.#made === this.#limit) {
        throw new AppError('overloaded', `All ${this.#limit} sequences are in use; wait for one to end`);
      }
      const { sparePositions = CachePool.SPARE_POSITIONS } = this.#shape;
      tensors = new CacheTensors(this.#runtime, this.#shape, this.#capacity + sparePositions);
      this.#made++;
    }
    return new PooledCache(tensors, this.#capacity, (returned) => this.#takeBack(returned));
  }

  #takeBack(tensors: CacheTensors): void {
    if (this.#disposed) {
      tensors[Symbol.dispose]();
      return;
    }
    tensors.discard();
    this.#free.push(tensors);
  }

  /** Caches that are still open give their memory back when they are disposed of. */
  [Symbol.dispose](): void {
    this.#disposed = true;
    for (const tensors of this.#free.splice(0)) tensors[Symbol.dispose]();
  }
}
