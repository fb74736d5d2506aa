import type { TokenId } from '../../core/token.ts';
import { MatchCalibration } from './match-calibration.ts';

export interface MatchOptions {
  /** Longest and shortest run of tokens that is looked up; vLLM's `prompt_lookup_max` and `prompt_lookup_min`. */
  readonly maxMatch: number;
  readonly minMatch: number;
}

/** What is expected to follow, token by token. */
export interface Continuation {
  readonly tokens: TokenId[];
  readonly probabilities: number[];
}

/** Earlier places where the end of the sequence stood before. */
interface Match {
  /** Tokens that agree, backwards from the end. */
  readonly length: number;
  /** Where the occurrences of that length end, latest first. */
  readonly ends: readonly number[];
}

/** Occurrences that are compared, latest first: text repeats itself nearby, and a look-up costs the same however long it is. */
const CANDIDATES = 16;
const NOWHERE = -1;
const NO_PREDICTION = -1;

/**
 * Finds where the end of a sequence occurred before, and what followed there (prompt look-up decoding, Saxena 2023; the
 * longest suffix and its most frequent continuation as in SuffixDecoding, Oliaro et al. 2024).
 *
 * Runs of `minMatch` tokens are found by hash. Each position points to the latest earlier one with the same hash, so that a
 * token costs a few comparisons and eight bytes, and the last one can be taken back.
 */
export class SuffixIndex {
  readonly #options: MatchOptions;
  readonly #calibration: MatchCalibration;
  readonly #tokens: TokenId[] = [];
  /** By hash, the latest end of a run. */
  readonly #latest = new Map<number, number>();
  /** By token: the end before it of a run of the same hash, or {@link NOWHERE}. */
  readonly #earlier: number[] = [];
  /** By token: twice the kind of the prediction that there was of it, plus 1 if it was right; or {@link NO_PREDICTION}. */
  readonly #foretold: number[] = [];

  constructor(options: MatchOptions) {
    this.#options = options;
    this.#calibration = new MatchCalibration(options.maxMatch);
  }

  get length(): number {
    return this.#tokens.length;
  }

  push(token: TokenId): void {
    const match = this.#match();
    let foretold = NO_PREDICTION;
    if (match !== null) {
      const vote = this.#vote(match.ends, 0, []);
      const kind = this.#calibration.kindOf({ length: match.length, share: vote.agreeing.length / match.ends.length });
      const hit = vote.token === token;
      this.#calibration.count(kind, hit, 1);
      foretold = 2 * kind + (hit ? 1 : 0);
    }
    this.#foretold.push(foretold);
    this.#tokens.push(token);
    const hash = this.#hashOfEnd();
    this.#earlier.push(hash === null ? NOWHERE : (this.#latest.get(hash) ?? NOWHERE));
    if (hash !== null) this.#latest.set(hash, this.#tokens.length);
  }

  truncate(length: number): void {
    while (this.#tokens.length > length) {
      const hash = this.#hashOfEnd();
      this.#tokens.pop();
      const earlier = this.#earlier.pop() as number;
      if (hash !== null && earlier === NOWHERE) this.#latest.delete(hash);
      else if (hash !== null) this.#latest.set(hash, earlier);
      const foretold = this.#foretold.pop() as number;
      if (foretold !== NO_PREDICTION) this.#calibration.count(foretold >> 1, (foretold & 1) === 1, -1);
    }
  }

  /**
   * What followed the longest earlier match of the sequence's end: at each place the most frequent token of the
   * occurrences that agree with the draft so far, the latest's among equals.
   *
   * A probability is the one that a token follows, given those before it: how often matches of this length and agreement
   * were right so far.
   * @param limit largest number of tokens to return
   * @param leastProbability of the tokens up to the last one together
   */
  continuation(limit: number, leastProbability = 0): Continuation {
    const found: Continuation = { tokens: [], probabilities: [] };
    const match = this.#match();
    if (match === null) return found;
    let ends = match.ends;
    let together = 1;
    for (let i = 0; i < limit; i++) {
      const { token, agreeing } = this.#vote(ends, i, found.tokens);
      const probability = this.#calibration.probability({ length: match.length + i, share: agreeing.length / ends.length });
      together *= probability;
      if (together < leastProbability) break;
      found.tokens.push(token);
      found.probabilities.push(probability);
      ends = agreeing;
    }
    return found;
  }

  /** The most frequent token `offset` places behind the given ends, and the ends that it follows. */
  #vote(ends: readonly number[], offset: number, draft: readonly TokenId[]): { token: TokenId; agreeing: readonly number[] } {
    // A period shorter than the draft goes on into the draft itself.
    const tokenBehind = (end: number): TokenId =>
      (this.#tokens[end + offset] ?? draft[end + offset - this.#tokens.length]) as TokenId;
    if (ends.length === 1) return { token: tokenBehind(ends[0] as number), agreeing: ends };
    const followers = new Map<TokenId, number[]>();
    for (const end of ends) {
      const token = tokenBehind(end);
      const known = followers.get(token);
      if (known === undefined) followers.set(token, [end]);
      else known.push(end);
    }
    // In the order of their latest occurrence, so that the first of the longest wins.
    let best: { token: TokenId; agreeing: readonly number[] } | null = null;
    for (const [token, agreeing] of followers) {
      if (best === null || agreeing.length > best.agreeing.length) best = { token, agreeing };
    }
    return best as { token: TokenId; agreeing: readonly number[] };
  }

  #match(): Match | null {
    const { minMatch } = this.#options;
    let longest = minMatch;
    let ends: number[] = [];
    let candidate = this.#earlier.at(-1) ?? NOWHERE;
    for (let i = 0; i < CANDIDATES && candidate !== NOWHERE; i++) {
      const length = this.#matchLength(candidate);
      if (length > longest) {
        longest = length;
        ends = [candidate];
      } else if (length === longest) ends.push(candidate);
      candidate = this.#earlier[candidate - 1] as number;
    }
    return ends.length === 0 ? null : { length: longest, ends };
  }

  /** Tokens that agree when counting backwards from `end` and from the end of the sequence. */
  #matchLength(end: number): number {
    const { maxMatch } = this.#options;
    const tokens = this.#tokens;
    const last = tokens.length;
    let length = 0;
    while (length < maxMatch && length < end && tokens[end - 1 - length] === tokens[last - 1 - length]) length++;
    return length;
  }

  #hashOfEnd(): number | null {
    const { minMatch } = this.#options;
    const end = this.#tokens.length;
    if (end < minMatch) return null;
    let hash = 0;
    for (let i = end - minMatch; i < end; i++) hash = Math.imul(hash ^ (this.#tokens[i] as number), 0x9e3779b1) ^ (hash >>> 15);
    return hash;
  }
}
