/** Rows of taps that are still to become context, and copies of those that wait for longer than a step. */
import type { OwnedTensor } from '../../onnx/tensor.ts';
import type { CommittedRows } from '../drafter.ts';

export type Taps = CommittedRows['taps'];

/** Rows that may wait: a sequence that is not drafted for pays for no context, as long as memory allows. */
export const MOST_DEFERRED_ROWS = 256;

/** Memory for {@link MOST_DEFERRED_ROWS} rows at a time, used again: to allocate it takes longer than to fill it. */
export class RowBuffers {
  readonly #free: Float32Array[] = [];
  readonly layers: readonly number[];
  readonly hidden: number;

  /**
   * @param layers whose rows are wanted, of those that a step has
   * @param hidden values of a row
   */
  constructor(layers: readonly number[], hidden: number) {
    this.layers = [...new Set(layers)];
    this.hidden = hidden;
  }

  get bytes(): number {
    return this.#values * Float32Array.BYTES_PER_ELEMENT;
  }

  get #values(): number {
    return MOST_DEFERRED_ROWS * this.layers.length * this.hidden;
  }

  take(): Float32Array {
    return this.#free.pop() ?? new Float32Array(this.#values);
  }

  giveBack(buffer: Float32Array): void {
    this.#free.push(buffer);
  }
}

/** Copies of one sequence's rows, at most {@link MOST_DEFERRED_ROWS}. */
export class DeferredRows {
  readonly #buffers: RowBuffers;
  /** [layers, room, hidden]; null while there are no rows. */
  #values: Float32Array | null = null;
  #room = 0;
  #count = 0;

  constructor(buffers: RowBuffers) {
    this.#buffers = buffers;
  }

  get count(): number {
    return this.#count;
  }

  /** Copies rows behind those that are here. */
  append(taps: Taps, rows: readonly number[]): void {
    if (rows.length === 0) return;
    const values = this.#withRoomFor(this.#count + rows.length);
    for (const [index, layer] of this.#buffers.layers.entries()) {
      copyRows(taps.get(layer) as OwnedTensor<'f32'>, rows, values, index * this.#room + this.#count);
    }
    this.#count += rows.length;
  }

  /** Becomes a copy of the other's first rows, `most` at the most, in no more memory than they take. */
  copyFrom(other: DeferredRows, most: number): void {
    this.clear();
    const count = Math.min(other.#count, most);
    if (count === 0 || other.#values === null) return;
    this.#values = new Float32Array(this.#buffers.layers.length * count * this.#buffers.hidden);
    this.#room = count;
    this.#count = count;
    for (const index of this.#buffers.layers.keys()) this.#values.set(other.#rowsOf(index, count), this.#offset(index));
  }

  /** Writes all rows of each layer, from row `first` on. */
  copyTo(into: Taps, first: number): void {
    for (const [index, layer] of this.#buffers.layers.entries()) {
      if (this.#count > 0) into.get(layer)?.data.set(this.#rowsOf(index, this.#count), first * this.#buffers.hidden);
    }
  }

  /** Forgets the rows from `count` on. */
  truncate(count: number): void {
    this.#count = Math.min(this.#count, count);
  }

  /** Forgets all rows, and gives back their memory. */
  clear(): void {
    if (this.#values !== null && this.#room === MOST_DEFERRED_ROWS) this.#buffers.giveBack(this.#values);
    this.#values = null;
    this.#room = 0;
    this.#count = 0;
  }

  #offset(index: number): number {
    return index * this.#room * this.#buffers.hidden;
  }

  #rowsOf(index: number, count: number): Float32Array {
    const offset = this.#offset(index);
    return (this.#values as Float32Array).subarray(offset, offset + count * this.#buffers.hidden);
  }

  #withRoomFor(rows: number): Float32Array {
    if (this.#values !== null && this.#room >= rows) return this.#values;
    const { layers, hidden } = this.#buffers;
    const larger = this.#buffers.take();
    for (const index of layers.keys()) {
      if (this.#count > 0) larger.set(this.#rowsOf(index, this.#count), index * MOST_DEFERRED_ROWS * hidden);
    }
    this.#values = larger;
    this.#room = MOST_DEFERRED_ROWS;
    return larger;
  }
}

/** Writes rows of a tensor behind each other, from row `first` on. */
export function copyRows(from: OwnedTensor<'f32'>, rows: readonly number[], into: Float32Array, first: number): void {
  const hidden = from.shape[1] as number;
  const { data } = from;
  for (const [i, row] of rows.entries()) {
    into.set(data.subarray(row * hidden, (row + 1) * hidden), (first + i) * hidden);
  }
}
