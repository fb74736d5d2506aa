/** Rows of taps that are still to become context, and copies of those that wait for longer than a step. */
import type { OwnedTensor } from '../../onnx/tensor.ts';
import type { CommittedRows } from '../drafter.ts';

export type Taps = CommittedRows['taps'];

/** Rows that may wait: a sequence that is not drafted for pays for no context, as long as memory allows. */
export const MOST_DEFERRED_ROWS = 256;

/** Copies; memory grows with the rows. */
export class DeferredRows {
  /** By layer; [rows or more, hidden] each. */
  readonly #layers: Map<number, Float32Array>;
  #hidden = 0;
  #count = 0;

  /** @param layers whose rows are wanted, of those that a step has */
  constructor(layers: Iterable<number>) {
    this.#layers = new Map(Array.from(layers, (layer) => [layer, new Float32Array(0)]));
  }

  get count(): number {
    return this.#count;
  }

  /** Copies rows behind those that are here; altogether they are at most {@link MOST_DEFERRED_ROWS}. */
  append(taps: Taps, rows: readonly number[]): void {
    for (const layer of this.#layers.keys()) {
      const tensor = taps.get(layer) as OwnedTensor<'f32'>;
      this.#hidden = tensor.shape[1] as number;
      copyRows(tensor, rows, this.#withRoomFor(layer, this.#count + rows.length), this.#count);
    }
    this.#count += rows.length;
  }

  /** Becomes a copy of the other's first rows, `most` at the most. */
  copyFrom(other: DeferredRows, most: number): void {
    this.#hidden = other.#hidden;
    this.#count = Math.min(other.#count, most);
    for (const [layer, rows] of other.#layers) this.#layers.set(layer, rows.slice(0, this.#count * this.#hidden));
  }

  /** Writes all rows of each layer, from row `first` on. */
  copyTo(into: Taps, first: number): void {
    for (const [layer, rows] of this.#layers) {
      into.get(layer)?.data.set(rows.subarray(0, this.#count * this.#hidden), first * this.#hidden);
    }
  }

  /** Forgets the rows from `count` on. */
  truncate(count: number): void {
    this.#count = Math.min(this.#count, count);
  }

  /** Forgets all rows, and gives back their memory. */
  clear(): void {
    this.#count = 0;
    for (const layer of this.#layers.keys()) this.#layers.set(layer, new Float32Array(0));
  }

  #withRoomFor(layer: number, rows: number): Float32Array {
    const held = this.#layers.get(layer) as Float32Array;
    const values = rows * this.#hidden;
    if (held.length >= values) return held;
    const larger = new Float32Array(Math.max(values, Math.min(2 * held.length, MOST_DEFERRED_ROWS * this.#hidden)));
    larger.set(held);
    this.#layers.set(layer, larger);
    return larger;
  }
}

/** Writes rows of a tensor behind each other, from row `first` on. */
export function copyRows(from: OwnedTensor<'f32'>, rows: readonly number[], into: Float32Array, first: number): void {
  const hidden = from.shape[1] as number;
  for (const [i, row] of rows.entries()) {
    into.set(from.data.subarray(row * hidden, (row + 1) * hidden), (first + i) * hidden);
  }
}
