/** Finds the first stop string in a text that arrives in pieces, and lets nothing out that may belong to one. */
import { AppError } from '../core/app-error.ts';

export interface StopStringOptions {
  /** Keep the stop string at the end of the text. */
  readonly includeStopString: boolean;
}

export interface StopStringMatch {
  readonly stopString: string;
  /** Text of the same piece behind the stop string; it is no part of the answer. */
  readonly dropped: string;
}

export interface MatchedText {
  /** Text that is safe to deliver. */
  readonly text: string;
  /** The stop string that ended the answer with this piece, else null. */
  readonly match: StopStringMatch | null;
}

/**
 * The match is the stop string that is complete first, character by character; of those that end at the same character, the
 * first in the list. So it does not depend on how the text is cut into pieces, and a round that brings many tokens ends where
 * token-by-token decoding does. (vLLM, which looks at the pieces, takes the first in the list when one piece completes several.)
 */
export class StopStringMatcher {
  readonly #stopStrings: readonly string[];
  readonly #includeStopString: boolean;
  /** The longest end of the text so far that begins a stop string. */
  #held = '';
  #matched = false;

  /** @throws AppError `invalid_request` when a stop string is empty */
  constructor(stopStrings: readonly string[], { includeStopString }: StopStringOptions) {
    if (stopStrings.includes('')) {
      throw new AppError('invalid_request', 'expected stop strings of at least one character, got an empty one; leave it out', {
        details: { param: 'stop' },
      });
    }
    this.#stopStrings = stopStrings;
    this.#includeStopString = includeStopString;
  }

  /** Feeds the next piece. After a match everything is dropped. */
  push(piece: string): MatchedText {
    if (this.#matched) return { text: '', match: null };
    const text = this.#held + piece;
    const found = firstMatch(text, this.#held.length, this.#stopStrings);
    if (found !== null) {
      this.#matched = true;
      this.#held = '';
      const { stopString, end } = found;
      return {
        text: text.slice(0, this.#includeStopString ? end : end - stopString.length),
        match: { stopString, dropped: text.slice(end) },
      };
    }
    return { text: this.#release(text), match: null };
  }

  /**
   * Feeds a piece in which stop strings do not end the answer; one that begins in it and ends in a later piece does.
   * @returns text that is safe to deliver
   */
  pass(piece: string): string {
    return this.#matched ? '' : this.#release(this.#held + piece);
  }

  #release(text: string): string {
    const safe = text.length - heldLength(text, this.#stopStrings);
    this.#held = text.slice(safe);
    return text.slice(0, safe);
  }

  /** @returns the text that was held back and turned out to be no stop string. Call once, when the answer ended without a match. */
  flush(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }
}

/** @param seen characters that were looked at before: a match ends behind them */
function firstMatch(
  text: string,
  seen: number,
  stopStrings: readonly string[],
): { readonly stopString: string; readonly end: number } | null {
  let first: { readonly stopString: string; readonly end: number } | null = null;
  for (const stopString of stopStrings) {
    const start = text.indexOf(stopString, seen - stopString.length + 1);
    const end = start + stopString.length;
    if (start >= 0 && (first === null || end < first.end)) first = { stopString, end };
  }
  return first;
}

/** Length of the longest end of the text that is the beginning of a stop string. */
function heldLength(text: string, stopStrings: readonly string[]): number {
  const longest = stopStrings.reduce((length, stopString) => Math.max(length, stopString.length - 1), 0);
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const end = text.slice(-length);
    if (stopStrings.some((stopString) => stopString.startsWith(end))) return length;
  }
  return 0;
}
