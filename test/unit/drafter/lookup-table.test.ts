import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../../src/core/token.ts';
import { type LookupOptions, LookupTable } from '../../../src/drafter/ngram/lookup-table.ts';

/** Occurrences of a run that are looked at, from the latest on. */
const CANDIDATES = 16;

/** The same by looking everywhere: the longest match of the end, the latest among equals, and what followed it. */
function naiveContinuation(tokens: readonly TokenId[], { maxMatch, minMatch }: LookupOptions, limit: number): TokenId[] {
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
  const best = earlier.findLast(({ length }) => length === longest);
  if (best === undefined) return [];
  const extended = [...tokens];
  for (let i = 0; i < limit; i++) extended.push(extended[best.end + i]!);
  return extended.slice(tokens.length);
}

function tableOf(tokens: readonly TokenId[], options: LookupOptions): LookupTable {
  const table = new LookupTable(options);
  for (const token of tokens) table.push(token);
  return table;
}

/** With few tokens, so that runs come again and again. */
const texts = fc.integer({ min: 1, max: 3 }).chain((max) => fc.array(fc.integer({ min: 0, max }), { maxLength: 80 }));
const options = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 4 }))
  .map(([minMatch, more]) => ({ minMatch, maxMatch: minMatch + more }));

describe('a look-up', () => {
  const PAIRS: LookupOptions = { minMatch: 2, maxMatch: 4 };

  it.each([
    { title: 'finds nothing in an empty text', text: [], found: [] },
    { title: 'finds nothing for an end that is new', text: [1, 2, 3, 4, 5], found: [] },
    { title: 'finds nothing for a match that is too short', text: [1, 2, 9, 2], found: [] },
    { title: 'continues as it went on before', text: [1, 2, 3, 4, 5, 1, 2], found: [3, 4, 5] },
    { title: 'takes the longest match, though another is later', text: [7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], found: [3, 8, 1] },
    { title: 'takes the latest among equals', text: [1, 2, 3, 9, 1, 2, 4, 9, 1, 2], found: [4, 9, 1] },
    { title: 'goes on with a period that is shorter than the draft', text: [5, 6, 5, 6], found: [5, 6, 5] },
    { title: 'goes on with a single token', text: [8, 8, 8], found: [8, 8, 8] },
  ])('$title', ({ text, found }) => {
    expect(tableOf(text, PAIRS).continuation(3)).toEqual(found);
  });

  it.each([
    { between: CANDIDATES - 1, found: [5] },
    { between: CANDIDATES, found: [9] },
  ])('looks at the latest 16 occurrences: with $between shorter matches behind the longest it finds $found', (row) => {
    const shorter = Array.from({ length: row.between }, () => [2, 1]).flat();
    const table = tableOf([9, 1, 5, ...shorter, 9, 1], { minMatch: 1, maxMatch: 2 });
    expect(table.continuation(1)).toEqual(row.found);
  });

  it('finds what a search of the whole text finds', () => {
    fc.assert(
      fc.property(texts, options, fc.integer({ min: 1, max: 6 }), (text, lookup, limit) => {
        expect(tableOf(text, lookup).continuation(limit)).toEqual(naiveContinuation(text, lookup, limit));
      }),
      { numRuns: 1000 },
    );
  });

  it('does not see what was cut off', () => {
    fc.assert(
      fc.property(texts, texts, texts, options, (kept, cutOff, behind, lookup) => {
        const table = tableOf([...kept, ...cutOff], lookup);
        table.truncate(kept.length);
        expect(table.length).toBe(kept.length);
        for (const token of behind) table.push(token);
        expect(table.continuation(5)).toEqual(tableOf([...kept, ...behind], lookup).continuation(5));
      }),
      { numRuns: 500 },
    );
  });
});
