import { AppError } from '../../core/app-error.ts';
import type { Position, TokenId } from '../../core/token.ts';
import type { CommittedRows, DraftState, ForkedState } from '../drafter.ts';
import type { DecoderCache } from './draft-decoder.ts';

/**
 * The rows observed, and what of them is in the decoder's cache. That may also hold an anchor and draft tokens of the last
 * draft: where they turn out to be the sequence's own, they are not computed again.
 */
export class DraftModelState implements DraftState {
  readonly #cache: DecoderCache;
  readonly #observed: TokenId[] = [];
  /** The tokens whose rows the cache holds. */
  readonly #cached: TokenId[] = [];
  /** Leading tokens that are known to be the same in both. */
  #agreeing = 0;

  constructor(cache: DecoderCache) {
    this.#cache = cache;
  }

  get cache(): DecoderCache {
    return this.#cache;
  }

  observe(rows: CommittedRows): void {
    if (rows.position !== this.#observed.length) {
      throw new AppError(
        'internal',
        `Expected rows from position ${this.#observed.length}, as many as are known, got ${rows.position}`,
      );
    }
    for (const token of rows.tokens) this.#observed.push(token);
  }

  rewind(length: Position): void {
    this.#observed.length = length;
    this.#agreeing = Math.min(this.#agreeing, length);
  }

  /**
   * A state that has observed the first `length` rows, or all if they are fewer; what is cached of them is copied.
   * @param cache empty; taken over
   */
  fork(cache: DecoderCache, length: Position): ForkedState {
    const state = new DraftModelState(cache);
    for (const token of this.#observed.slice(0, length)) state.#observed.push(token);
    this.#agree();
    state.#agreeing = Math.min(this.#agreeing, state.#observed.length);
    try {
      cache.copyFrom(this.#cache, state.#agreeing);
    } catch (error) {
      cache[Symbol.dispose]();
      throw error;
    }
    for (const token of this.#cached.slice(0, state.#agreeing)) state.#cached.push(token);
    return { state, length: state.#observed.length };
  }

  /** Rows observed. */
  get length(): number {
    return this.#observed.length;
  }

  get waitingRows(): number {
    this.#agree();
    return this.#observed.length - this.#agreeing;
  }

  /**
   * Cuts the cache back to what the sequence has, and returns the tokens that it lacks.
   * @param anchor the last of these, in any case, as logits are wanted behind it
   */
  missing(anchor: TokenId): TokenId[] {
    this.#agree();
    this.#cache.truncate(this.#agreeing);
    this.#cached.length = this.#agreeing;
    return [...this.#observed.slice(this.#agreeing), anchor];
  }

  #agree(): void {
    const most = Math.min(this.#observed.length, this.#cached.length);
    while (this.#agreeing < most && this.#cached[this.#agreeing] === this.#observed[this.#agreeing]) this.#agreeing++;
  }

  /** The cache holds these now, too. */
  computed(tokens: readonly TokenId[]): void {
    for (const token of tokens) this.#cached.push(token);
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
  }
}
