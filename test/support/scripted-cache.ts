import { AppError } from '../../src/core/app-error.ts';
import { DisposedError } from '../../src/core/disposed-error.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { SequenceCache } from '../../src/target/target.ts';

/** Keeps tokens where a real cache keeps keys and values; those behind `length` are what earlier steps left there. */
export class ScriptedCache implements SequenceCache {
  readonly owner: object;
  readonly capacity: number;
  readonly #release: () => void;
  readonly #stored: TokenId[] = [];
  #length = 0;
  /** Positions that hold: what was known beforehand, and draft tokens as far as the logits behind them were read. */
  #holds = 0;
  #disposed = false;

  constructor(owner: object, capacity: number, release: () => void) {
    this.owner = owner;
    this.capacity = capacity;
    this.#release = release;
  }

  get length(): number {
    return this.#length;
  }

  /** What the sequence is, as far as it is cached. */
  get tokens(): readonly TokenId[] {
    return this.#stored.slice(0, this.#length);
  }

  truncate(length: number): void {
    if (this.#disposed) throw new DisposedError('A sequence cache');
    if (!Number.isInteger(length) || length < 0 || length > this.#length) {
      throw new AppError('internal', `Expected a length of 0 to ${this.#length}, got ${length}`);
    }
    this.#length = length;
    this.#holds = Math.min(this.#holds, length);
  }

  copyFrom(source: SequenceCache, length: number): void {
    if (this.#disposed) throw new DisposedError('A sequence cache');
    if (!(source instanceof ScriptedCache) || source.owner !== this.owner || source.#disposed) {
      throw new AppError('internal', 'Expected an open cache of the same target');
    }
    if (this.#length !== 0 || length < 0 || length > source.#length) {
      throw new AppError('internal', `Expected an empty cache and a length of 0 to ${source.#length}, got ${length}`);
    }
    for (let i = 0; i < length; i++) this.#stored[i] = source.#stored[i]!;
    this.#length = length;
    this.#holds = length;
  }

  /** Writes behind the length, as a step does before it is known whether it succeeds. */
  write(tokens: readonly TokenId[]): void {
    if (this.#disposed) throw new DisposedError('A sequence cache');
    for (const [row, token] of tokens.entries()) this.#stored[this.#length + row] = token;
  }

  /** Counts rows that were written, of which those behind `logitsFrom` are drafts. */
  grow(rows: number, logitsFrom: number): void {
    this.#holds = this.#length + Math.min(rows, logitsFrom + 1);
    this.#length += rows;
  }

  /** Logits were read behind the last of `length` positions, which nobody does who has given up one of them. */
  holdsUpTo(length: number): void {
    this.#holds = Math.max(this.#holds, length);
  }

  /** @throws AppError when draft tokens are left whose fate was never looked at */
  expectCutBack(): void {
    if (this.#disposed) throw new DisposedError('A sequence cache');
    if (this.#length > this.#holds) {
      throw new AppError('internal', `Expected a cache cut back to ${this.#holds} positions, got ${this.#length}`);
    }
  }

  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#release();
  }
}
