import type { TokenId } from '../../core/token.ts';

export interface LookupOptions {
  /** Longest and shortest run of tokens that is looked up; vLLM's `prompt_lookup_max` and `prompt_lookup_min`. */
  readonly maxMatch: number;
  readonly minMatch: number;
}

/**
 * Finds where the end of a sequence occurred before, and what followed there (prompt look-up decoding, Saxena 2023).
 *
 * The latest occurrence of every run of `minMatch` tokens is kept in a hash map, so that a look-up costs the same
 * however long the sequence is. Among occurrences the latest is taken, and candidates are extended backwards: the
 * longest match of up to `maxMatch` tokens wins.
 */
export class LookupTable {
  readonly #options: LookupOptions;
  readonly #tokens: TokenId[] = [];
  /** End positions of each run of `minMatch` tokens, latest last. */
  readonly #ends = new Map<string, number[]>();

  constructor(options: LookupOptions) {
    this.#options = options;
  }

  get length(): number {
    return this.#tokens.length;
  }

  push(token: TokenId): void {
    this.#tokens.push(token);
    const key = this.#runEndingAt(this.#tokens.length);
    if (key === null) return;
    const ends = this.#ends.get(key);
    if (ends === undefined) this.#ends.set(key, [this.#tokens.length]);
    else ends.push(this.#tokens.length);
  }

  truncate(length: number): void {
    while (this.#tokens.length > length) {
      const key = this.#runEndingAt(this.#tokens.length);
      if (key !== null) {
        const ends = this.#ends.get(key) as number[];
        ends.pop();
        if (ends.length === 0) this.#ends.delete(key);
      }
      this.#tokens.pop();
    }
  }

  /**
   * What followed the best earlier match of the sequence's end.
   * @param limit largest number of tokens to return
   */
  continuation(limit: number): TokenId[] {
    const end = this.#tokens.length;
    const key = this.#runEndingAt(end);
    const ends = key === null ? undefined : this.#ends.get(key);
    if (ends === undefined) return [];
    let best = -1;
    let bestMatch = 0;
    // The last entry is the sequence's own end. A few recent occurrences are enough: text repeats itself nearby.
    const CANDIDATES = 16;
    for (let i = ends.length - 2; i >= 0 && i >= ends.length - 1 - CANDIDATES; i--) {
      const candidate = ends[i] as number;
      const match = this.#matchLength(candidate, end);
      if (match > bestMatch) {
        best = candidate;
        bestMatch = match;
        if (match === this.#options.maxMatch) break;
      }
    }
    if (best < 0) return [];
    const found: TokenId[] = [];
    // A period shorter than the draft goes on into the draft itself.
    for (let i = 0; i < limit; i++) {
      const source = best + i;
      found.push((source < end ? this.#tokens[source] : found[source - end]) as TokenId);
    }
    return found;
  }

  /** Tokens that agree when counting backwards from both ends. */
  #matchLength(end: number, other: number): number {
    let match = 0;
    while (match < this.#options.maxMatch && match < end && this.#tokens[end - 1 - match] === this.#tokens[other - 1 - match])
      match++;
    return match;
  }

  #runEndingAt(end: number): string | null {
    const { minMatch } = this.#options;
    return end < minMatch ? null : this.#tokens.slice(end - minMatch, end).join();
  }
}
