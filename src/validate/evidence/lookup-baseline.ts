/**
 * Drafts by looking up the last tokens in the other sequences: what a table of n-grams knows of the target's answers.
 * It needs no training, so that a trained drafter which misses what the table finds has not learned its task.
 */
import type { TokenId } from '../../core/token.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';

/** Longest match that is looked for, in tokens. */
const LONGEST = 4;

/** For each anchor and slot of a sequence the token that the table gives, or -1; laid out like {@link Predictions.ids}. */
export type LookupDrafts = Int32Array;

interface Place {
  readonly sequence: number;
  /** Position of the token behind the n-gram. */
  readonly next: number;
}

/** @returns by sequence; each is drafted for without its own tokens */
export function lookupDrafts(sequences: readonly RecordedSequence[], slots: number): readonly LookupDrafts[] {
  const table = new Map<string, Place[]>();
  for (const [sequence, { tokens }] of sequences.entries()) {
    for (let next = 1; next < tokens.length; next++) {
      for (let length = 1; length <= Math.min(LONGEST, next); length++) {
        const key = keyOf(tokens, next, length);
        const places = table.get(key);
        if (places === undefined) table.set(key, [{ sequence, next }]);
        else places.push({ sequence, next });
      }
    }
  }
  return sequences.map((own, index) => {
    const { tokens, answerStart } = own;
    const anchors = Math.max(tokens.length - answerStart - 1, 0);
    const drafts = new Int32Array(anchors * slots).fill(-1);
    for (let anchor = 0; anchor < anchors; anchor++) {
      const continuation = longestMatch(table, tokens, answerStart + anchor + 1, index, slots - 1, sequences);
      for (const [i, token] of continuation.entries()) drafts[anchor * slots + 1 + i] = token;
    }
    return drafts;
  });
}

/** What most often follows the longest n-gram that another sequence has too. */
function longestMatch(
  table: ReadonlyMap<string, readonly Place[]>,
  tokens: readonly TokenId[],
  end: number,
  own: number,
  count: number,
  sequences: readonly RecordedSequence[],
): readonly TokenId[] {
  for (let length = Math.min(LONGEST, end); length >= 1; length--) {
    const places = table.get(keyOf(tokens, end, length))?.filter(({ sequence }) => sequence !== own) ?? [];
    if (places.length === 0) continue;
    return Array.from({ length: count }, (_, i) =>
      mostFrequent(places.map(({ sequence, next }) => sequences[sequence]?.tokens[next + i] ?? -1)),
    );
  }
  return [];
}

function mostFrequent(tokens: readonly TokenId[]): TokenId {
  const counts = new Map<TokenId, number>();
  let best = -1;
  for (const token of tokens) {
    const count = (counts.get(token) ?? 0) + 1;
    counts.set(token, count);
    if (token >= 0 && count > (counts.get(best) ?? 0)) best = token;
  }
  return best;
}

function keyOf(tokens: readonly TokenId[], end: number, length: number): string {
  return tokens.slice(end - length, end).join();
}
