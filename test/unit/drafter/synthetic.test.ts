import { describe, expect, it } from 'vitest';
import type { DrafterContext } from '../../../src/drafter/drafter-context.ts';
import {
  acceptanceByLength,
  acceptanceByRates,
  type SyntheticAcceptance,
} from '../../../src/drafter/synthetic/synthetic-acceptance.ts';
import { SyntheticDrafter } from '../../../src/drafter/synthetic/synthetic-drafter.ts';
import { syntheticSource } from '../../../src/drafter/synthetic/synthetic-source.ts';

const ROUNDS = 20_000;

/** Shares of rounds that keep each place of a draft. */
function shares(acceptance: SyntheticAcceptance, drafted: number): number[] {
  const kept = new Array<number>(drafted).fill(0);
  for (let position = 0; position < ROUNDS; position++) {
    const accepted = acceptance.accepted(drafted, 7n, position);
    for (let place = 0; place < accepted; place++) kept[place]!++;
  }
  return kept.map((count) => count / ROUNDS);
}

describe('synthetic acceptance', () => {
  it('keeps each place of a draft as often as its rate says', () => {
    const rates = [0.9, 0.6, 0.6, 0.1];
    for (const [place, share] of shares(acceptanceByRates(rates), 4).entries()) expect(share).toBeCloseTo(rates[place]!, 1);
  });

  it('keeps all with rates of 1, and none with rates of 0', () => {
    expect(shares(acceptanceByRates([1, 1, 1]), 3)).toEqual([1, 1, 1]);
    expect(shares(acceptanceByRates([0, 0]), 2)).toEqual([0, 0]);
  });

  it('keeps no more than there is, and nothing behind the last rate', () => {
    expect(acceptanceByRates([1, 1, 1]).accepted(2, 1n, 0)).toBe(2);
    expect(acceptanceByRates([1]).accepted(5, 1n, 0)).toBe(1);
  });

  it('is the same for the same seed and position, and other for others', () => {
    const acceptance = acceptanceByRates([0.5, 0.5, 0.5]);
    const run = (seed: bigint) => Array.from({ length: 64 }, (_, position) => acceptance.accepted(3, seed, position)).join('');
    expect(run(3n)).toBe(run(3n));
    expect(run(3n)).not.toBe(run(4n));
    expect(new Set(run(3n)).size).toBe(2);
  });

  it.each([1, 1.5, 3.3, 6])('emits %d tokens a round when asked to', (length) => {
    const acceptance = acceptanceByLength(length, 5);
    expect(acceptance.rates.reduce((sum, rate) => sum + rate, 1)).toBeCloseTo(length, 6);
    expect(shares(acceptance, 5).reduce((sum, share) => sum + share, 1)).toBeCloseTo(length, 1);
  });

  it.each([[[]], [[1.1]], [[-0.1]], [[0.5, 0.6]], [[Number.NaN]]])('is refused for rates %j', (rates) => {
    expect(() => acceptanceByRates(rates)).toThrowError(expect.objectContaining({ code: 'invalid_config' }));
  });

  it.each([0.9, 6.1, Number.NaN])('is refused for a length of %d with drafts of 5', (length) => {
    expect(() => acceptanceByLength(length, 5)).toThrowError(/1 to 6 .*5 tokens/);
  });
});

describe('a synthetic drafter', () => {
  it('drafts stand-ins that do not end an answer: the anchor again', async () => {
    const drafter = new SyntheticDrafter(acceptanceByRates([0.5, 0.4, 0.3]));
    const state = drafter.open();
    const requests = [2, 9, 0].map((budget) => ({ state, anchor: 42, budget }));
    expect(await drafter.propose(requests)).toEqual([{ tokens: [42, 42] }, { tokens: [42, 42, 42] }, { tokens: [] }]);
    expect(drafter).toMatchObject({ kind: 'synthetic', maxDraftTokens: 3, taps: [] });
  });

  it.each([
    { words: '0.8,0.6, 0.4', rates: [0.8, 0.6, 0.4] },
    { words: 'length:3/2', rates: [1, 1] },
  ])('is made of $words', async ({ words, rates }) => {
    const drafter = (await syntheticSource(words).load({} as DrafterContext)) as SyntheticDrafter;
    expect(drafter.synthetic.rates.map((rate) => Number(rate.toFixed(6)))).toEqual(rates);
  });

  it.each(['', 'often', '0.8,', 'length:3', 'length:9/2', '0.4,0.8'])('is not made of %j', (words) => {
    expect(() => syntheticSource(words)).toThrowError(expect.objectContaining({ code: 'invalid_config' }));
  });
});
