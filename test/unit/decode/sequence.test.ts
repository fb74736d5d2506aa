import { describe, expect, it } from 'vitest';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import type { DraftState } from '../../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import { placed, stopsAt } from './sequence-fixture.ts';

describe('the budget of a draft', () => {
  it.each([
    {
      title: 'is what the request wants while there is room',
      options: { maxTokens: 20, limit: 4 },
      budget: 4,
      reason: null,
    },
    {
      title: 'leaves room for the target’s own token',
      options: { maxTokens: 5, emitted: 1, limit: 4 },
      budget: 3,
      reason: 'near-max-tokens',
    },
    {
      title: 'is one when two tokens are allowed',
      options: { maxTokens: 3, emitted: 1, limit: 4 },
      budget: 1,
      reason: 'near-max-tokens',
    },
    { title: 'is none near max_tokens', options: { maxTokens: 2, emitted: 1 }, budget: 0, reason: 'near-max-tokens' },
    {
      title: 'is none at the end of the context',
      options: { maxTokens: 2, emitted: 1, limitedBy: 'context' },
      budget: 0,
      reason: 'context-limit',
    },
    { title: 'is none without a drafter', options: { limit: null }, budget: 0, reason: 'no-drafter' },
    {
      title: 'is none when the request says so',
      options: { drafting: 'disabled-by-request' },
      budget: 0,
      reason: 'disabled-by-request',
    },
    {
      title: 'is none without a drafter, near max_tokens too',
      options: { limit: null, maxTokens: 2, emitted: 1 },
      budget: 0,
      reason: 'no-drafter',
    },
  ] as const)('$title', ({ options, budget, reason }) => {
    expect(placed(options).sequence.draftBudget()).toEqual({ budget, reason });
  });
});

describe('a sequence', () => {
  it('knows what is not cached yet', () => {
    expect(placed({ prompt: 5 }).sequence.uncached).toBe(5);
    expect(placed({ prompt: 5, cached: 2 }).sequence.uncached).toBe(3);
    expect(placed({ prompt: 5, emitted: 2 }).sequence.uncached).toBe(1);
  });

  it('ends with a stop token, the reason being the rule’s', () => {
    const { sequence } = placed({ stopRule: stopsAt(9) });
    expect(sequence.emit(8)).toBe(false);
    expect(sequence.ending).toBeNull();
    expect(sequence.emit(9)).toBe(true);
    expect(sequence.ending).toEqual({ reason: 'stop', stopReason: 9 });
    expect(sequence.emitted).toBe(2);
  });

  it('ends when its processor has, for a stop', () => {
    const seen: number[] = [];
    const processor = {
      process: () => undefined,
      push: (token: number) => seen.push(token),
      get ended() {
        return seen.includes(7);
      },
      [Symbol.dispose]: () => undefined,
    };
    const { sequence } = placed({ processor, maxTokens: 2 });
    expect(sequence.emit(8)).toBe(false);
    expect(sequence.emit(7)).toBe(true);
    expect(sequence.ending).toEqual({ reason: 'stop', stopReason: null });
  });

  it('ends at its limit, for a stop when the last token is one', () => {
    const { sequence } = placed({ maxTokens: 2 });
    expect([sequence.emit(1), sequence.emit(2)]).toEqual([false, true]);
    expect(sequence.ending).toEqual({ reason: 'length', stopReason: null });
    const stopping = placed({ maxTokens: 1, stopRule: stopsAt(9) }).sequence;
    stopping.emit(9);
    expect(stopping.ending?.reason).toBe('stop');
  });

  it('counts rounds, and those without a draft by reason', () => {
    const { sequence } = placed();
    const plain = { drafted: 0, evaluated: 0, accepted: 0, emitted: 1 };
    sequence.record(plain, 'no-proposal');
    sequence.record({ drafted: 2, evaluated: 2, accepted: 2, emitted: 3 }, null);
    sequence.record(plain, 'no-proposal');
    expect(sequence.rounds).toHaveLength(3);
    expect([...sequence.noDraft]).toEqual([['no-proposal', 2]]);
  });

  it('goes on without a drafter that failed, and says so', () => {
    const state = countedState();
    const { sequence } = placed({ drafting: { drafter: new NgramDrafter(), state, limit: 4, lengths: FIXED_LENGTH } });
    sequence.dropDrafter(new Error('out of luck'));
    expect(sequence.drafting).toBeNull();
    expect(sequence.drafterError).toBe('out of luck');
    expect(sequence.draftBudget()).toEqual({ budget: 0, reason: 'drafter-failed' });
    sequence[Symbol.dispose]();
    expect(state.disposals).toBe(1);
  });

  it('says what a drafter failed of first, not that it cannot let go either', () => {
    const { sequence } = placed({
      drafting: { drafter: new NgramDrafter(), state: countedState(true), limit: 4, lengths: FIXED_LENGTH },
    });
    sequence.dropDrafter('out of luck');
    expect(sequence.drafterError).toBe('out of luck');
  });

  it('gives back the cache and the drafter’s state, even when that one fails at it', () => {
    const state = countedState();
    const kept = placed({ drafting: { drafter: new NgramDrafter(), state, limit: 4, lengths: FIXED_LENGTH } });
    kept.sequence[Symbol.dispose]();
    expect([kept.cache.disposals, state.disposals]).toEqual([1, 1]);
    const broken = placed({
      drafting: { drafter: new NgramDrafter(), state: countedState(true), limit: 4, lengths: FIXED_LENGTH },
    });
    broken.sequence[Symbol.dispose]();
    expect(broken.cache.disposals).toBe(1);
    expect(broken.sequence.drafterError).toBe('cannot let go');
  });
});

function countedState(fails = false): DraftState & { disposals: number } {
  return {
    disposals: 0,
    observe: () => undefined,
    rewind: () => undefined,
    [Symbol.dispose]() {
      this.disposals++;
      if (fails) throw new Error('cannot let go');
    },
  };
}
