import { describe, expect, it } from 'vitest';
import { GREEDY } from '../../../src/core/sampling-params.ts';
import type { TokenId } from '../../../src/core/token.ts';
import { DraftModelDrafter } from '../../../src/drafter/draft-model/draft-model-drafter.ts';
import type { DraftState } from '../../../src/drafter/drafter.ts';
import { NoneDrafter } from '../../../src/drafter/none/none-drafter.ts';
import { hashedLogits, nextToken } from '../../support/scripted-logits.ts';
import { SCRIPTED_VOCAB, scriptedDecoder } from './scripted-decoder.ts';

const SEED = 9;
const next = nextToken(hashedLogits({ vocabSize: SCRIPTED_VOCAB, seed: SEED, memory: 6 }), GREEDY);
const NEVER = new AbortController().signal;

/** What the model says when it goes on by itself. */
function continuation(tokens: readonly TokenId[], count: number): TokenId[] {
  const all = [...tokens];
  for (let i = 0; i < count; i++) all.push(next(all));
  return all.slice(tokens.length);
}

function open(options: Parameters<typeof scriptedDecoder>[1] = {}, longest = 4) {
  const decoder = scriptedDecoder(SEED, options);
  const drafter = new DraftModelDrafter(decoder, longest);
  const state = drafter.open();
  let length = 0;
  return {
    drafter,
    state,
    decoder: decoder.scripted,
    observe(...tokens: TokenId[]) {
      state.observe({ position: length, tokens, taps: new Map(), firstRow: 0 });
      length += tokens.length;
    },
    rewind(to: number) {
      state.rewind(to);
      length = to;
    },
    async draft(anchor: TokenId, budget: number) {
      const [proposal] = await drafter.propose([{ state, anchor, budget }], NEVER);
      return proposal!;
    },
  };
}

describe('a draft model', () => {
  it('drafts what it says itself', async () => {
    const { observe, draft } = open();
    observe(1, 2, 3);
    expect((await draft(5, 4)).tokens).toEqual(continuation([1, 2, 3, 5], 4));
  });

  it('gives each token the probability that it has among all', async () => {
    const { observe, draft } = open();
    observe(1, 2, 3);
    const { tokens, probabilities } = await draft(5, 2);
    const logits = hashedLogits({ vocabSize: SCRIPTED_VOCAB, seed: SEED, memory: 6 });
    for (const [i, token] of tokens.entries()) {
      const row = logits([1, 2, 3, 5, ...tokens.slice(0, i)]);
      const mass = row.reduce((sum, logit) => sum + Math.exp(logit), 0);
      expect(probabilities![i]).toBeCloseTo(Math.exp(row[token]!) / mass, 6);
    }
  });

  it('computes one row for each draft token, and none again that was accepted', async () => {
    const { observe, draft, decoder } = open();
    observe(1, 2, 3);
    const { tokens } = await draft(5, 4);
    expect(decoder.stepRows).toEqual([4, 1, 1, 1]);
    // Two were accepted, and the target goes on with another token.
    observe(5, tokens[0]!, tokens[1]!);
    const anchor = (tokens[2]! + 1) % SCRIPTED_VOCAB;
    expect((await draft(anchor, 2)).tokens).toEqual(continuation([1, 2, 3, 5, tokens[0]!, tokens[1]!, anchor], 2));
    expect(decoder.stepRows.slice(4)).toEqual([1, 1]);
  });

  it('computes the last draft token where all were accepted', async () => {
    const { observe, draft, decoder } = open();
    observe(1, 2, 3);
    const { tokens } = await draft(5, 4);
    observe(5, ...tokens);
    await draft(7, 1);
    expect(decoder.stepRows.slice(4)).toEqual([2]);
  });

  it('computes anew what took the place of rows that were cut off', async () => {
    const { observe, draft, rewind } = open();
    observe(1, 2, 3, 4);
    await draft(5, 2);
    await draft(6, 2);
    rewind(2);
    observe(9, 9, 9);
    expect((await draft(5, 2)).tokens).toEqual(continuation([1, 2, 9, 9, 9, 5], 2));
  });

  it('keeps what it observed for the next draft while there is none to make', async () => {
    const { observe, draft, decoder, state } = open();
    observe(1, 2, 3);
    expect(state.waitingRows).toBe(3);
    expect(await draft(5, 0)).toEqual({ tokens: [] });
    expect(decoder.stepRows).toEqual([]);
    observe(5);
    expect(state.waitingRows).toBe(4);
    expect((await draft(6, 1)).tokens).toEqual(continuation([1, 2, 3, 5, 6], 1));
    expect([decoder.stepRows, decoder.logitRows]).toEqual([[5], [1]]);
    expect(state.waitingRows).toBe(0);
  });

  it('takes a long prompt in several steps', async () => {
    const { observe, draft, decoder } = open({ maxRows: 4 });
    observe(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    expect((await draft(11, 2)).tokens).toEqual(continuation([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 2));
    expect(decoder.stepRows).toEqual([4, 4, 3, 1]);
  });

  it('does not keep a sequence that drafts waiting for another’s prompt', async () => {
    const decoder = scriptedDecoder(SEED, { maxRows: 4 });
    const drafter = new DraftModelDrafter(decoder, 3);
    const [short, long] = [drafter.open(), drafter.open()];
    short.observe({ position: 0, tokens: [1], taps: new Map(), firstRow: 0 });
    long.observe({ position: 0, tokens: [1, 2, 3, 4, 5, 6, 7], taps: new Map(), firstRow: 0 });
    const proposals = await drafter.propose(
      [
        { state: long, anchor: 8, budget: 1 },
        { state: short, anchor: 2, budget: 3 },
      ],
      NEVER,
    );
    expect(proposals.map(({ tokens }) => tokens)).toEqual([continuation([1, 2, 3, 4, 5, 6, 7, 8], 1), continuation([1, 2], 3)]);
    expect(decoder.scripted.stepRows).toEqual([4, 4, 4]);
  });

  it('drafts no further than it has positions, and then no more', async () => {
    const { observe, draft } = open({ maxContext: 6 });
    observe(1, 2, 3);
    expect((await draft(4, 4)).tokens).toHaveLength(3);
    observe(4, 5);
    expect((await draft(6, 4)).tokens).toHaveLength(1);
    observe(6);
    expect((await draft(7, 4)).tokens).toEqual([]);
    observe(7, 8);
    expect((await draft(9, 4)).tokens).toEqual([]);
  });

  it('goes on as if nothing had been when a draft was given up', async () => {
    let fails = true;
    const duringStep = (step: number) => {
      if (fails && step === 2) throw new Error('given up');
    };
    const { observe, draft } = open({ duringStep });
    observe(1, 2, 3);
    await expect(draft(5, 4)).rejects.toThrowError('given up');
    fails = false;
    expect((await draft(5, 4)).tokens).toEqual(continuation([1, 2, 3, 5], 4));
  });

  it('forks a sequence with what is computed of it, and leaves it alone', async () => {
    const decoder = scriptedDecoder(SEED);
    const drafter = new DraftModelDrafter(decoder, 3);
    const state = drafter.open();
    state.observe({ position: 0, tokens: [1, 2, 3, 4, 5, 6], taps: new Map(), firstRow: 0 });
    await drafter.propose([{ state, anchor: 7, budget: 3 }], NEVER);
    // Observed, but not computed.
    state.observe({ position: 6, tokens: [9, 9], taps: new Map(), firstRow: 0 });
    const draft = async (one: DraftState, anchor: TokenId) => {
      decoder.scripted.stepRows.length = 0;
      const [proposal] = await drafter.propose([{ state: one, anchor, budget: 2 }], NEVER);
      return proposal!.tokens;
    };
    const [shorter, longer] = [drafter.fork(state, 4), drafter.fork(state, 20)];
    expect([shorter.length, longer.length]).toEqual([4, 8]);
    expect(await draft(shorter.state, 8)).toEqual(continuation([1, 2, 3, 4, 8], 2));
    expect(decoder.scripted.stepRows).toEqual([1, 1]);
    expect(await draft(longer.state, 8)).toEqual(continuation([1, 2, 3, 4, 5, 6, 9, 9, 8], 2));
    expect(decoder.scripted.stepRows).toEqual([3, 1]);
    expect(await draft(state, 8)).toEqual(continuation([1, 2, 3, 4, 5, 6, 9, 9, 8], 2));
    expect(decoder.scripted.stepRows).toEqual([3, 1]);
    for (const open of [state, shorter.state, longer.state]) open[Symbol.dispose]();
    expect(decoder.scripted.openCaches).toBe(0);
  });

  it('refuses rows out of order and a state of another drafter', async () => {
    const { drafter } = open();
    const state = drafter.open();
    expect(() => state.observe({ position: 1, tokens: [1], taps: new Map(), firstRow: 0 })).toThrowError(/position 0/);
    const other = { state: new NoneDrafter().open(), anchor: 1, budget: 1 };
    await expect(drafter.propose([other], NEVER)).rejects.toMatchObject({ code: 'internal' });
  });
});
