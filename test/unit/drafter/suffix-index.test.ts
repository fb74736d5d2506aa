import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../../src/core/token.ts';
import { type MatchOptions, SuffixIndex } from '../../../src/drafter/ngram/suffix-index.ts';

/** Occurrences of a run that are looked at, from the latest on. */
const CANDIDATES = 16;

/** The same by looking everywhere: the longest matches of the end, and what most of them went on with. */
function naiveContinuation(tokens: readonly TokenId[], { maxMatch, minMatch }: MatchOptions, limit: number): TokenId[] {
  const matchLength = (end: number) => {
    let length = 0;
    while (length < maxMatch && length < end && tokens[end - 1 - length] === tokens.at(-1 - length)) length++;
    return length;
  };
  const earlier = Array.from({ length: Math.max(tokens.length - 1, 0) }, (_, i) => i + 1)
    .map((end) => ({ end, length: matchLength(end) }))
    .filter(({ length }) => length >= minMatch)
    .slice(-CANDIDATES);
  const longest = Math.max(...earlier.map(({ length }) => length));
  let ends = earlier.filter(({ length }) => length === longest).map(({ end }) => end);
  const extended = [...tokens];
  for (let i = 0; i < limit && ends.length > 0; i++) {
    const followers = ends.map((end) => extended[end + i]!);
    const count = (token: TokenId) => followers.filter((follower) => follower === token).length;
    const most = Math.max(...followers.map(count));
    const chosen = followers.findLast((token) => count(token) === most)!;
    ends = ends.filter((end) => extended[end + i] === chosen);
    extended.push(chosen);
  }
  return extended.slice(tokens.length);
}

function indexOf(tokens: readonly TokenId[], options: MatchOptions): SuffixIndex {
  const index = new SuffixIndex(options);
  for (const token of tokens) index.push(token);
  return index;
}

/** With few tokens, so that runs come again and again. */
const texts = fc.integer({ min: 1, max: 3 }).chain((max) => fc.array(fc.integer({ min: 0, max }), { maxLength: 80 }));
const options = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 4 }))
  .map(([minMatch, more]) => ({ minMatch, maxMatch: minMatch + more }));

describe('a look-up', () => {
  const PAIRS: MatchOptions = { minMatch: 2, maxMatch: 4 };

  it.each([
    { title: 'finds nothing in an empty text', text: [], found: [] },
    { title: 'finds nothing for an end that is new', text: [1, 2, 3, 4, 5], found: [] },
    { title: 'finds nothing for a match that is too short', text: [1, 2, 9, 2], found: [] },
    { title: 'continues as it went on before', text: [1, 2, 3, 4, 5, 1, 2], found: [3, 4, 5] },
    { title: 'takes the longest match, though another is later', text: [7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], found: [3, 8, 1] },
    { title: 'takes the latest of two that went on differently', text: [1, 2, 3, 9, 1, 2, 4, 9, 1, 2], found: [4, 9, 1] },
    {
      title: 'takes what came most often, though another is later',
      text: [1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2],
      found: [3, 9, 1],
    },
    { title: 'goes on with a period that is shorter than the draft', text: [5, 6, 5, 6], found: [5, 6, 5] },
    { title: 'goes on with a single token', text: [8, 8, 8], found: [8, 8, 8] },
  ])('$title', ({ text, found }) => {
    expect(indexOf(text, PAIRS).continuation(3).tokens).toEqual(found);
  });

  it.each([
    { between: CANDIDATES - 1, found: [5] },
    { between: CANDIDATES, found: [2] },
  ])('looks at the latest 16 occurrences: with $between shorter matches behind the longest it finds $found', (row) => {
    const shorter = Array.from({ length: row.between }, () => [2, 1]).flat();
    const index = indexOf([9, 1, 5, ...shorter, 9, 1], { minMatch: 1, maxMatch: 2 });
    expect(index.continuation(1).tokens).toEqual(row.found);
  });

  it('finds what a search of the whole text finds', () => {
    fc.assert(
      fc.property(texts, options, fc.integer({ min: 1, max: 6 }), (text, lookup, limit) => {
        expect(indexOf(text, lookup).continuation(limit).tokens).toEqual(naiveContinuation(text, lookup, limit));
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps nothing of what was cut off, nor of how often it was right about that', () => {
    fc.assert(
      fc.property(texts, texts, texts, options, (kept, cutOff, behind, lookup) => {
        const index = indexOf([...kept, ...cutOff], lookup);
        index.truncate(kept.length);
        expect(index.length).toBe(kept.length);
        for (const token of behind) index.push(token);
        expect(index.continuation(5)).toEqual(indexOf([...kept, ...behind], lookup).continuation(5));
      }),
      { numRuns: 500 },
    );
  });
});

describe('the probability of a token', () => {
  const OPTIONS: MatchOptions = { minMatch: 2, maxMatch: 4 };
  const first = (text: readonly TokenId[]) => indexOf(text, OPTIONS).continuation(1).probabilities[0]!;

  it('is larger the longer the match', () => {
    expect(first([1, 2, 3, 4, 9, 1, 2, 3])).toBeGreaterThan(first([1, 2, 4, 9, 1, 2]));
  });

  it('is the share of the occurrences that went on with it', () => {
    const agreeing = first([1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 3, 7, 1, 2]);
    const split = first([1, 2, 3, 8, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2]);
    expect(split).toBeLessThan(agreeing);
  });

  it('follows how often matches of this length were right', () => {
    // Pairs that come twice, and are followed by another token the second time, or by the same.
    const wrong = Array.from({ length: 12 }, (_, i) => [40 + i, 60 + i, 80 + i, 40 + i, 60 + i, 100 + i]).flat();
    const right = Array.from({ length: 12 }, (_, i) => [40 + i, 60 + i, 80 + i, 40 + i, 60 + i, 80 + i]).flat();
    const bothEnd = [7, 8, 9, 6, 7, 8];
    expect(first([...wrong, ...bothEnd])).toBeLessThan(0.45);
    expect(first([...right, ...bothEnd])).toBeGreaterThan(0.8);
  });

  it('is close to the rate at which it holds, over texts that repeat themselves with changes', () => {
    let state = 7;
    const random = () => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state / 2 ** 32;
    };
    const phrase = Array.from({ length: 30 }, (_, i) => 100 + i);
    const text = Array.from({ length: 60 }, () =>
      phrase.map((token) => (random() < 0.1 ? Math.floor(random() * 90) : token)),
    ).flat();
    const index = new SuffixIndex({ minMatch: 2, maxMatch: 8 });
    let [believed, held, count] = [0, 0, 0];
    for (const token of text) {
      const { tokens, probabilities } = index.continuation(1);
      if (tokens.length > 0) {
        believed += probabilities[0]!;
        held += tokens[0] === token ? 1 : 0;
        count++;
      }
      index.push(token);
    }
    expect(count).toBeGreaterThan(1000);
    expect(Math.abs(believed - held) / count).toBeLessThan(0.05);
  });
});
