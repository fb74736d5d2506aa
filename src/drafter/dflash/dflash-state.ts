/** What a DFlash drafter remembers of one sequence. */
import { AppError } from '../../core/app-error.ts';
import type { PooledCache } from '../../model/kv-cache.ts';
import type { CommittedRows, DraftState } from '../drafter.ts';
import { copyRows, DeferredRows, MOST_DEFERRED_ROWS, type RowBuffers, type Taps } from './deferred-rows.ts';

/**
 * Keys and values of the context, and rows that are still to be turned into some: those of the last target step, and
 * before them deferred ones, which are copies. Invariant: cached, deferred and pending rows are the rows observed.
 */
export class DflashState implements DraftState {
  readonly cache: PooledCache;
  #pendingTaps: Taps | null = null;
  #pendingRows: number[] = [];
  readonly #deferred: DeferredRows;

  constructor(cache: PooledCache, buffers: RowBuffers) {
    this.cache = cache;
    this.#deferred = new DeferredRows(buffers);
  }

  get pendingRows(): readonly number[] {
    return this.#pendingRows;
  }

  get pendingTaps(): Taps | null {
    return this.#pendingTaps;
  }

  get waitingRows(): number {
    return this.#deferred.count + this.#pendingRows.length;
  }

  get deferredRows(): number {
    return this.#deferred.count;
  }

  observe(rows: CommittedRows): void {
    const known = this.cache.length + this.waitingRows;
    if (rows.position !== known) {
      throw new AppError('internal', `Expected rows from position ${known}, as many as are known, got ${rows.position}`);
    }
    if (this.#pendingTaps !== null && this.#pendingTaps !== rows.taps) {
      throw new AppError(
        'internal',
        'Rows of an earlier step are still pending, and their taps are gone; propose after each step',
      );
    }
    this.#pendingTaps = rows.taps;
    for (let i = 0; i < rows.tokens.length; i++) this.#pendingRows.push(rows.firstRow + i);
  }

  /** Keeps copies of the pending rows, if they are few and lie in host memory; else false, and nothing is done. */
  defer(): boolean {
    if (this.#pendingTaps === null) return this.#pendingRows.length === 0;
    if (this.waitingRows > MOST_DEFERRED_ROWS || !onHost(this.#pendingTaps)) return false;
    this.#deferred.append(this.#pendingTaps, this.#pendingRows);
    this.#clearPending();
    return true;
  }

  /**
   * Copies the first context rows of another state, whose cached rows this one has, as long as they are few.
   * @returns how many, `most` at the most
   */
  takeContext(from: DflashState, most: number): number {
    const limit = Math.min(most, MOST_DEFERRED_ROWS);
    this.#deferred.copyFrom(from.#deferred, limit);
    const taps = from.#pendingTaps;
    if (taps !== null && onHost(taps)) this.#deferred.append(taps, from.#pendingRows.slice(0, limit - this.#deferred.count));
    return this.#deferred.count;
  }

  /** Writes the context rows of each layer behind each other, from row `first` on. */
  copyContext(into: Taps, first: number): void {
    this.#deferred.copyTo(into, first);
    for (const [layer, tensor] of this.#pendingTaps ?? []) {
      const rows = into.get(layer);
      if (rows !== undefined) copyRows(tensor, this.#pendingRows, rows.data, first + this.#deferred.count);
    }
  }

  /** The context rows are in the cache now. */
  absorbed(): void {
    this.cache.grow(this.waitingRows);
    this.#deferred.clear();
    this.#clearPending();
  }

  rewind(length: number): void {
    const excess = Math.max(this.cache.length + this.waitingRows - length, 0);
    const pending = Math.min(excess, this.#pendingRows.length);
    this.#pendingRows.length -= pending;
    this.#deferred.truncate(Math.max(this.#deferred.count - (excess - pending), 0));
    if (this.#pendingRows.length === 0) this.#pendingTaps = null;
    if (length < this.cache.length) this.cache.truncate(length);
  }

  [Symbol.dispose](): void {
    this.#deferred.clear();
    this.cache[Symbol.dispose]();
  }

  #clearPending(): void {
    this.#pendingRows = [];
    this.#pendingTaps = null;
  }
}

/** Only there rows can be copied without a run. */
function onHost(taps: Taps): boolean {
  return [...taps.values()].every(({ placement }) => placement !== 'device');
}
