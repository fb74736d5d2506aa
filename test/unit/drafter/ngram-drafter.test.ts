import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../../src/core/token.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { NoneDrafter } from '../../../src/drafter/none/none-drafter.ts';

async function draft(drafter: NgramDrafter, tokens: readonly TokenId[], anchor: TokenId, budget: number) {
  const state = drafter.open();
  state.observe({ position: 0, tokens, taps: new Map(), firstRow: 0 });
  const [proposal] = await drafter.propose([{ state, anchor, budget }]);
  return proposal?.tokens;
}

describe('prompt look-up', () => {
  it('drafts what followed the last tokens, the anchor among them', async () => {
    expect(await draft(new NgramDrafter(), [1, 2, 3, 4, 5, 6, 9, 1, 2], 3, 8)).toEqual([4, 5, 6, 9, 1, 2, 3, 4]);
  });

  it('drafts nothing when the anchor makes the end new', async () => {
    expect(await draft(new NgramDrafter(), [1, 2, 3, 4, 5, 1, 2], 9, 8)).toEqual([]);
  });

  it('keeps to its own limit and to the budget', async () => {
    const text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2];
    expect(await draft(new NgramDrafter(), text, 3, 2)).toEqual([4, 5]);
    const short = new NgramDrafter({ maxDraftTokens: 5, maxMatch: 4, minMatch: 2 });
    expect(await draft(short, text, 3, 50)).toHaveLength(5);
    expect(short.maxDraftTokens).toBe(5);
  });

  it('ends a draft where it is not likely to hold as a whole', async () => {
    const text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1, 2];
    const options = { maxDraftTokens: 9, maxMatch: 8, minMatch: 2 };
    const lengths: number[] = [];
    for (const leastProbability of [0, 0.35, 0.5, 0.9]) {
      lengths.push((await draft(new NgramDrafter({ ...options, leastProbability }), text, 3, 9))!.length);
    }
    expect(lengths[0]).toBe(9);
    expect(lengths).toEqual([...lengths].sort((a, b) => b - a));
    expect(new Set(lengths).size).toBe(4);
  });

  it('does not keep the anchor: the sequence may go on otherwise', async () => {
    const drafter = new NgramDrafter({ maxDraftTokens: 3, maxMatch: 2, minMatch: 1 });
    const state = drafter.open();
    state.observe({ position: 0, tokens: [1, 2, 3], taps: new Map(), firstRow: 0 });
    const first = await drafter.propose([{ state, anchor: 1, budget: 3 }]);
    expect(await drafter.propose([{ state, anchor: 1, budget: 3 }])).toEqual(first);
    expect(await drafter.propose([{ state, anchor: 9, budget: 3 }])).toEqual([{ tokens: [], probabilities: [] }]);
  });

  it('refuses a state of another drafter', async () => {
    const state = new NoneDrafter().open();
    await expect(new NgramDrafter().propose([{ state, anchor: 1, budget: 1 }])).rejects.toMatchObject({ code: 'internal' });
  });
});
