import { describe, expect, it } from 'vitest';
import { DraftHistory } from '../../../../src/decode/draft-length/draft-history.ts';
import type { Sequence } from '../../../../src/decode/sequence.ts';

const sequence = () => ({}) as Sequence;
const FREE = [0, 0, 0, 0];
const CHEAP = [0.1, 0.2, 0.3, 0.4];
const DEAR = [0.5, 1, 1.5, 2];

function history(drafts: readonly (readonly [Sequence, readonly number[]])[]): DraftHistory {
  const made = new DraftHistory();
  for (const [one, survivals] of drafts) made.add(one, survivals);
  return made;
}

const repeated = <Item>(count: number, item: Item): Item[] => new Array<Item>(count).fill(item);

describe('what a draft will be worth', () => {
  it('is not known before there were some', () => {
    const one = sequence();
    expect(history(repeated(15, [one, [0.9]])).forecast(FREE)).toBeNull();
    expect(history(repeated(16, [one, [0.9]])).forecast(FREE)).not.toBeNull();
  });

  it('is what is expected to be accepted, less the price of the rows that are worth it', () => {
    const one = sequence();
    const known = history(repeated(40, [one, [0.9, 0.6, 0.25]]));
    expect(known.forecast(FREE)?.(one).value).toBeCloseTo(1.75, 9);
    expect(known.forecast(CHEAP)?.(one).value).toBeCloseTo(1.75 - 0.3, 9);
    // The third token would take 0.5, and gives 0.25.
    expect(known.forecast(DEAR)?.(one).value).toBeCloseTo(1.5 - 1, 9);
  });

  it('is had at any price from drafts that were made at another', () => {
    const one = sequence();
    const known = history(repeated(40, [one, [0.4]]));
    expect(known.forecast(DEAR)?.(one).value).toBe(0);
    expect(known.forecast(CHEAP)?.(one).value).toBeCloseTo(0.3, 9);
  });

  it('counts no more tokens than there is room for', () => {
    const one = sequence();
    const known = history(repeated(40, [one, [0.9, 0.6]]));
    expect(known.forecast([0.1])?.(one).value).toBeCloseTo(0.8, 9);
    expect(known.forecast([])?.(one).value).toBe(0);
  });

  it('is a sequence’s own after some drafts, and what is typical before', () => {
    const [good, bad, unknown] = [sequence(), sequence(), sequence()];
    const known = history([...repeated(20, [bad, [0.1]] as const), ...repeated(24, [good, [0.9]] as const)]);
    const forecast = known.forecast(FREE);
    const typical = (8 * 0.1 + 24 * 0.9) / 32;
    expect(forecast?.(good).value).toBeCloseTo(0.9, 9);
    expect(forecast?.(bad).value).toBeCloseTo((4 * typical + 20 * 0.1) / 24, 9);
    // A new one is believed to be a little better, until it has had drafts.
    expect(forecast?.(unknown).value).toBeCloseTo(typical + 0.1, 9);
  });

  it('forgets the older drafts', () => {
    const one = sequence();
    const known = history([...repeated(100, [one, [0.1]] as const), ...repeated(32, [one, [0.8]] as const)]);
    expect(known.forecast(FREE)?.(one).value).toBeCloseTo(0.8, 9);
    expect(known.drafts(one)).toBe(24);
  });

  it('reaches one token further than drafts usually do at that price', () => {
    const one = sequence();
    const known = history(repeated(40, [one, [0.9, 0.6, 0.25, 0.05]]));
    expect([FREE, CHEAP, DEAR, [2, 4, 6, 8]].map((prices) => known.forecast(prices)?.(one).reach())).toEqual([5, 4, 3, 1]);
  });
});
