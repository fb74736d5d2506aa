/** The rules of the drafter port, as a suite that every drafter runs. */
import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../src/core/token.ts';
import type { Drafter, Proposal } from '../../src/drafter/drafter.ts';
import type { Target } from '../../src/target/target.ts';
import { ANCHOR, ShownSequences } from './shown-sequences.ts';

export const DRAFTER_RULES = [
  'drafts at most the budget, and never more than its longest draft',
  'drafts something for a text that repeats itself',
  'takes in what it observed and proposes nothing when the budget is 0',
  'answers each request, in the order of the requests',
  'drafts for several sequences at once what it drafts one by one',
  'keeps its sequences apart',
  'drafts the same whether rows came in one step or in several',
  'forgets what a rewind cuts off',
  'forgets rows that it has not yet taken in when a rewind cuts them off',
  'drafts ids of the vocabulary',
  'gives each token a probability from 0 to 1, or none at all',
  'drafts the same when asked again, and in a new sequence',
  'can be disposed of twice, as can its sequences',
  'drafts for a sequence that begins like another as if it had seen all of it itself',
] as const;
export type DrafterRule = (typeof DRAFTER_RULES)[number];

/** What one test works with: a new drafter, and the target whose steps it is shown. The suite disposes of both. */
export interface DrafterUnderTest {
  readonly drafter: Drafter;
  readonly target: Target;
}

export interface DrafterContract {
  readonly name: string;
  /**
   * Opens a drafter and its target. The target must compute the drafter's taps, hold three sequences and take 64 rows a
   * step.
   */
  open(): Promise<DrafterUnderTest>;
  /** Rules that cannot hold for this drafter, each with the reason. */
  readonly skips?: Partial<Readonly<Record<DrafterRule, string>>>;
}

/** Probabilities may differ in the last bits between batches of other shapes. */
const PROBABILITY_DIGITS = 4;
const BUDGET = 4;

export function describeDrafterContract({ name, open, skips = {} }: DrafterContract): void {
  const rule = (title: DrafterRule, check: (shown: ShownSequences) => Promise<void>) => {
    const reason = skips[title];
    it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, async () => {
      const { drafter, target } = await open();
      try {
        using shown = new ShownSequences(drafter, target);
        await check(shown);
      } finally {
        await drafter[Symbol.asyncDispose]();
        await target[Symbol.asyncDispose]();
      }
    });
  };

  describe(`the drafter ${name}`, () => {
    rule(DRAFTER_RULES[0], async (shown) => {
      const [text] = texts(shown);
      const sequence = shown.open();
      await shown.show([sequence, text]);
      for (const budget of [1, 2, shown.drafter.maxDraftTokens, shown.drafter.maxDraftTokens + 5]) {
        const proposal = await shown.proposeFor(sequence, budget);
        expect(proposal.tokens.length).toBeLessThanOrEqual(Math.min(budget, shown.drafter.maxDraftTokens));
      }
    });

    rule(DRAFTER_RULES[1], async (shown) => {
      const [text] = texts(shown);
      const sequence = shown.open();
      await shown.show([sequence, text]);
      expect((await shown.proposeFor(sequence, BUDGET)).tokens).not.toEqual([]);
    });

    rule(DRAFTER_RULES[2], async (shown) => {
      const [text, other] = texts(shown);
      const [early, late, bystander] = [shown.open(), shown.open(), shown.open()];
      await shown.show([early, text], [late, text]);
      const [nothing, expected] = await shown.propose([early, 0], [late, BUDGET]);
      expect(nothing?.tokens).toEqual([]);
      // Another step: whatever had not been taken in is gone.
      await shown.show([bystander, other]);
      expectSame(await shown.proposeFor(early, BUDGET), expected);
    });

    rule(DRAFTER_RULES[3], async (shown) => {
      const [one, two, three] = texts(shown);
      const [first, second, third] = [shown.open(), shown.open(), shown.open()];
      await shown.show([first, one], [second, two], [third, three]);
      const inOrder = await shown.propose([first, BUDGET], [second, 0], [third, 2]);
      const reversed = await shown.propose([third, 2], [second, 0], [first, BUDGET]);
      expect(inOrder).toHaveLength(3);
      for (const [i, proposal] of reversed.reverse().entries()) expectSame(proposal, inOrder[i]);
    });

    rule(DRAFTER_RULES[4], async (shown) => {
      const [one, two, three] = texts(shown);
      const sequences = [shown.open(), shown.open(), shown.open()] as const;
      await shown.show([sequences[0], one], [sequences[1], two], [sequences[2], three]);
      const together = await shown.propose([sequences[0], BUDGET], [sequences[1], BUDGET], [sequences[2], BUDGET]);
      for (const [i, text] of [one, two, three].entries()) {
        sequences[i]![Symbol.dispose]();
        const alone = shown.open();
        await shown.show([alone, text]);
        expectSame(await shown.proposeFor(alone, BUDGET), together[i]);
        alone[Symbol.dispose]();
      }
    });

    rule(DRAFTER_RULES[5], async (shown) => {
      const [one, two, three] = texts(shown);
      const [watched, neighbour] = [shown.open(), shown.open()];
      await shown.show([watched, one]);
      const before = await shown.proposeFor(watched, BUDGET);
      await shown.show([neighbour, two]);
      await shown.proposeFor(neighbour, BUDGET);
      await shown.show([neighbour, three]);
      await shown.proposeFor(neighbour, BUDGET);
      shown.rewind(neighbour, 2);
      expectSame(await shown.proposeFor(watched, BUDGET), before);
      neighbour[Symbol.dispose]();
      expectSame(await shown.proposeFor(watched, BUDGET), before);
    });

    rule(DRAFTER_RULES[6], async (shown) => {
      const [text] = texts(shown);
      const [atOnce, inPieces] = [shown.open(), shown.open()];
      await shown.show([atOnce, text]);
      const expected = await shown.proposeFor(atOnce, BUDGET);
      for (const piece of [text.slice(0, 1), text.slice(1, 8), text.slice(8, -1), text.slice(-1)]) {
        await shown.show([inPieces, piece]);
        await shown.propose([inPieces, 0]);
      }
      expectSame(await shown.proposeFor(inPieces, BUDGET), expected);
    });

    rule(DRAFTER_RULES[7], async (shown) => {
      const [text, other] = texts(shown);
      const [straight, returned] = [shown.open(), shown.open()];
      await shown.show([straight, text.slice(0, 9)], [returned, text.slice(0, 9)]);
      const [atNine] = await shown.propose([straight, BUDGET], [returned, 0]);
      await shown.show([returned, other.slice(0, 5)]);
      await shown.proposeFor(returned, BUDGET);
      shown.rewind(returned, 9);
      expectSame(await shown.proposeFor(returned, BUDGET), atNine);
      await shown.show([straight, text.slice(9)], [returned, text.slice(9)]);
      const [afterAll, afterReturn] = await shown.propose([straight, BUDGET], [returned, BUDGET]);
      expectSame(afterReturn, afterAll);
      shown.rewind(returned, 0);
      await shown.show([returned, text]);
      expectSame(await shown.proposeFor(returned, BUDGET), afterAll);
    });

    rule(DRAFTER_RULES[8], async (shown) => {
      const [text] = texts(shown);
      const [straight, returned] = [shown.open(), shown.open()];
      await shown.show([straight, text.slice(0, 9)], [returned, text]);
      shown.rewind(returned, 9);
      const [expected, actual] = await shown.propose([straight, BUDGET], [returned, BUDGET]);
      expectSame(actual, expected);
    });

    rule(DRAFTER_RULES[9], async (shown) => {
      const { vocabSize } = shown.target.facts;
      // One row, and that row's token again, are where look-ups run over the end.
      for (const text of [...texts(shown), [ANCHOR], [ANCHOR, ANCHOR]]) {
        using sequence = shown.open();
        await shown.show([sequence, text]);
        for (const token of (await shown.proposeFor(sequence, BUDGET)).tokens) {
          expect(Number.isInteger(token) && token >= 0 && token < vocabSize, `token ${token}`).toBe(true);
        }
      }
    });

    rule(DRAFTER_RULES[10], async (shown) => {
      for (const text of texts(shown)) {
        const sequence = shown.open();
        await shown.show([sequence, text]);
        const { tokens, probabilities } = await shown.proposeFor(sequence, BUDGET);
        if (probabilities === undefined) continue;
        expect(probabilities).toHaveLength(tokens.length);
        for (const probability of probabilities) {
          expect(probability).toBeGreaterThanOrEqual(0);
          expect(probability).toBeLessThanOrEqual(1);
        }
      }
    });

    rule(DRAFTER_RULES[11], async (shown) => {
      const [text] = texts(shown);
      const [first, second] = [shown.open(), shown.open()];
      await shown.show([first, text]);
      const expected = await shown.proposeFor(first, BUDGET);
      expectSame(await shown.proposeFor(first, BUDGET), expected);
      await shown.show([second, text]);
      expectSame(await shown.proposeFor(second, BUDGET), expected);
    });

    rule(DRAFTER_RULES[12], async (shown) => {
      const sequence = shown.open();
      await shown.show([sequence, texts(shown)[0]]);
      await shown.proposeFor(sequence, 1);
      sequence.state[Symbol.dispose]();
      sequence.state[Symbol.dispose]();
      await shown.drafter[Symbol.asyncDispose]();
      await shown.drafter[Symbol.asyncDispose]();
    });

    rule(DRAFTER_RULES[13], async (shown) => {
      const [text, other] = texts(shown);
      const [straight, source] = [shown.open(), shown.open()];
      await shown.show([straight, text], [source, text.slice(0, 12)]);
      const [expected] = await shown.propose([straight, BUDGET], [source, 0]);
      // Rows that were not taken in may be missing from what begins like it.
      await shown.show([source, other.slice(0, 3)]);
      straight[Symbol.dispose]();
      const branch = shown.branch(source, [...text.slice(0, 12), ...other.slice(0, 3)], 10);
      expect(branch.cache.length).toBe(10);
      await shown.propose([source, 0], [branch, 0]);
      await shown.show([branch, text.slice(10)], [source, other.slice(3)]);
      const [drafted] = await shown.propose([branch, BUDGET], [source, 0]);
      expectSame(drafted, expected);
      source[Symbol.dispose]();
      expectSame(await shown.proposeFor(branch, BUDGET), expected);
    });
  });
}

/** Three texts; the first repeats a phrase, with its last word still to come again. */
function texts({ target }: ShownSequences): readonly [TokenId[], TokenId[], TokenId[]] {
  const { vocabSize } = target.facts;
  const phrase = [1, 5, 2, 7, 3];
  const inVocabulary = (tokens: readonly TokenId[]) => tokens.map((token) => token % vocabSize);
  return [
    inVocabulary([...phrase, ...phrase, ...phrase, 1, 5]),
    inVocabulary([4, 4, 6, 4, 4, 6, 4, 4, 6]),
    inVocabulary(Array.from({ length: 20 }, (_, i) => (i * i + 3) % 11)),
  ];
}

function expectSame(actual: Proposal | undefined, expected: Proposal | undefined): void {
  expect(actual?.tokens).toEqual(expected?.tokens);
  expect(actual?.probabilities?.length).toBe(expected?.probabilities?.length);
  for (const [i, probability] of (expected?.probabilities ?? []).entries()) {
    expect(actual?.probabilities?.[i]).toBeCloseTo(probability, PROBABILITY_DIGITS);
  }
}
