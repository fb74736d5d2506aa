/** States of fixed size that stand for all positions of a sequence, and how rows are taken back from them. */
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { OwnedTensor } from '../onnx/tensor.ts';
import { StateNotKeptError } from './state-not-kept-error.ts';

export interface RecurrentShape {
  readonly layers: number;
  /** Of the rows that a layer's convolution still needs. */
  readonly window: readonly number[];
  /** Of what a layer's heads remember. */
  readonly state: readonly number[];
}

/** Both parts of the state, by recurrent layer. */
export class RecurrentTensors implements Disposable {
  readonly windows: readonly OwnedTensor<'f32'>[];
  readonly states: readonly OwnedTensor<'f32'>[];

  constructor(runtime: OnnxRuntime, { layers, window, state }: RecurrentShape) {
    this.windows = Array.from({ length: layers }, () => OwnedTensor.allocate(runtime, 'f32', window));
    this.states = Array.from({ length: layers }, () => OwnedTensor.allocate(runtime, 'f32', state));
  }

  copyFrom(source: RecurrentTensors): void {
    for (const [i, tensor] of this.windows.entries()) tensor.data.set(source.windows[i]!.data);
    for (const [i, tensor] of this.states.entries()) tensor.data.set(source.states[i]!.data);
  }

  [Symbol.dispose](): void {
    for (const tensor of [...this.windows, ...this.states]) tensor[Symbol.dispose]();
  }
}

/** The last step of a sequence, as long as it can be undone. */
interface LastStep {
  /** Rows absorbed before it; the other buffer holds the state after these. */
  readonly before: number;
  /** Where its rows begin in the step's record; null when they were not recorded. */
  readonly recordedFrom: number | null;
}

/** What brings a state to where its sequence was cut: rows of the record, from the state before them. */
export interface Replay {
  /** Null: the sequence began with these rows. */
  readonly from: RecurrentTensors | null;
  readonly into: RecurrentTensors;
  readonly firstRow: number;
  readonly rows: number;
}

/**
 * The state of one sequence. A step reads one buffer and writes the other, so that the state before it lasts until the
 * next: a step that fails changes nothing, and rows can be taken back. Taking back all of them swaps the buffers; for
 * some of them, the rows that stay are replayed from the state before the step, which gives the same bits as never
 * having absorbed the others.
 */
export class RecurrentState {
  readonly #buffers: readonly [RecurrentTensors, RecurrentTensors];
  #live: 0 | 1 = 0;
  #length = 0;
  #lastStep: LastStep | null = null;
  #cutTo: number | null = null;

  constructor(buffers: readonly [RecurrentTensors, RecurrentTensors]) {
    this.#buffers = buffers;
  }

  /** The state that the next step reads; null stands for zeros, before the first row. */
  get past(): RecurrentTensors | null {
    return this.#length === 0 ? null : this.#buffers[this.#live];
  }

  /** Where the next step writes. */
  get present(): RecurrentTensors {
    return this.#buffers[this.#other];
  }

  get #other(): 0 | 1 {
    return this.#live === 0 ? 1 : 0;
  }

  /** Counts rows that a step has absorbed. */
  advance(rows: number, recordedFrom: number | null): void {
    this.#lastStep = { before: this.#length, recordedFrom };
    this.#live = this.#other;
    this.#length += rows;
  }

  /**
   * Takes back all rows from `length` on.
   * @throws StateNotKeptError when that goes further back than the last step, or into rows that were not recorded
   */
  truncate(length: number): void {
    if (length === (this.#cutTo ?? this.#length)) return;
    const last = this.#lastStep;
    if (length === 0) {
      this.#become(this.#live, 0);
    } else if (length === last?.before) {
      this.#become(this.#other, length);
    } else if (last !== null && last.recordedFrom !== null && length > last.before) {
      this.#cutTo = length;
    } else {
      throw new StateNotKeptError(length, this.#keptInWords());
    }
  }

  /**
   * Becomes what the other is after all of its rows.
   * @throws StateNotKeptError while rows of the other are taken back, which is not computed before its next step
   */
  copyFrom(source: RecurrentState): void {
    if (source.#cutTo !== null) throw new StateNotKeptError(source.#cutTo, `${source.#length} positions`);
    if (source.past !== null) this.#buffers[0].copyFrom(source.past);
    this.#become(0, source.#length);
  }

  /** Goes on from a buffer as it is. */
  #become(live: 0 | 1, length: number): void {
    this.#live = live;
    this.#length = length;
    this.#cutTo = null;
    this.#lastStep = null;
  }

  #keptInWords(): string {
    const last = this.#lastStep;
    if (last !== null && last.recordedFrom !== null) return `${last.before} to ${this.#length} or to 0 positions`;
    const lengths = [this.#length, last?.before ?? 0, 0];
    return `${[...new Set(lengths)].join(' or ')} positions`;
  }

  /** What has to be computed before the state can be read; null when nothing has. */
  replay(): Replay | null {
    const last = this.#lastStep;
    if (this.#cutTo === null || last === null || last.recordedFrom === null) return null;
    return {
      from: last.before === 0 ? null : this.#buffers[this.#other],
      into: this.#buffers[this.#live],
      firstRow: last.recordedFrom,
      rows: this.#cutTo - last.before,
    };
  }

  /** The replay has run, if there was one, and the last step can no longer be undone. */
  settle(): void {
    this.#become(this.#live, this.#cutTo ?? this.#length);
  }
}
