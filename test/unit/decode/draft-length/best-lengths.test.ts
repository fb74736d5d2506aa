import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bestLengths } from '../../../../src/decode/draft-length/best-lengths.ts';

/** Every combination of lengths, compared: tokens less those that the time would give elsewhere. */
function bestByTrying(
  survivals: readonly (readonly number[])[],
  tokensPerMs: number,
  stepMs: (rows: number) => number,
): number {
  let best = Number.NEGATIVE_INFINITY;
  const visit = (sequence: number, tokens: number, rows: number): void => {
    if (sequence === survivals.length) {
      best = Math.max(best, tokens - tokensPerMs * stepMs(rows));
      return;
    }
    let gained = 0;
    visit(sequence + 1, tokens, rows + 1);
    for (const [slot, survival] of (survivals[sequence] ?? []).entries()) {
      gained += survival;
      visit(sequence + 1, tokens + gained, rows + 2 + slot);
    }
  };
  visit(0, 0, 0);
  return best;
}

describe('the best lengths', () => {
  it('are those that trying all of them finds', () => {
    const survivals = fc
      .array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 })
      .map((conditional) => conditional.map((_, i) => conditional.slice(0, i + 1).reduce((a, b) => a * b, 1)));
    fc.assert(
      fc.property(
        fc.array(survivals, { minLength: 1, maxLength: 4 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0.5, max: 10, noNaN: true }),
        fc.double({ min: 0, max: 3, noNaN: true }),
        (all, tokensPerMs, base, slope) => {
          const stepMs = (rows: number) => base + slope * rows;
          const lengths = bestLengths(all, tokensPerMs, stepMs);
          for (const [i, length] of lengths.entries()) expect(length).toBeLessThanOrEqual(all[i]?.length ?? 0);
          const tokens = lengths.flatMap((length, i) => all[i]!.slice(0, length)).reduce((sum, survival) => sum + survival, 0);
          const rows = lengths.reduce((sum, length) => sum + 1 + length, 0);
          expect(tokens - tokensPerMs * stepMs(rows)).toBeCloseTo(bestByTrying(all, tokensPerMs, stepMs), 9);
        },
      ),
    );
  });

  it('are prefixes: a likely slot behind an unlikely one does not jump the queue', () => {
    const lengths = bestLengths([[0.9, 0.1, 0.1]], 0.2, (rows) => 10 + rows);
    expect(lengths).toEqual([1]);
  });

  it('give rows to the sequence that is more likely to use them', () => {
    const lengths = bestLengths([[0.95, 0.9], [0.2]], 0.2, (rows) => 10 + 2 * rows);
    expect(lengths).toEqual([2, 0]);
  });

  it('are none when a row costs as much as a step', () => {
    expect(bestLengths([[0.9, 0.8]], 0.1, (rows) => 10 * rows)).toEqual([0]);
  });
});
