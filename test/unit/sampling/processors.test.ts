import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_RULES, type TokenRules } from '../../../src/core/token-rules.ts';
import { AnswerRules } from '../../../src/engine/answer-rules.ts';
import type { LogitsProcessor } from '../../../src/sampling/logits-processor.ts';
import { ProcessorChain } from '../../../src/sampling/processor-chain.ts';
import { AllowedTokens } from '../../../src/sampling/processors/allowed-tokens.ts';
import { BadWords } from '../../../src/sampling/processors/bad-words.ts';
import { LogitBias } from '../../../src/sampling/processors/logit-bias.ts';
import { MinTokens } from '../../../src/sampling/processors/min-tokens.ts';
import { OccurrencePenalties } from '../../../src/sampling/processors/occurrence-penalties.ts';
import { ruledRow } from '../../support/plain-rules.ts';
import { request } from '../engine/engine-fixture.ts';

const NO = Number.NEGATIVE_INFINITY;

function processed(processor: LogitsProcessor, logits: readonly number[], answer: readonly number[] = []): number[] {
  for (const token of answer) processor.push(token);
  const row = Float32Array.from(logits);
  processor.process(row);
  return [...row];
}

describe('a rule on tokens', () => {
  it('that names the allowed ones forbids all others, and leaves these as they are', () => {
    expect(processed(new AllowedTokens([2, 0, 2]), [1, 2, -3, 4])).toEqual([1, NO, -3, NO]);
  });

  it('that biases some adds to them', () => {
    const biases = new Map([
      [1, 2],
      [3, -100],
    ]);
    expect(processed(new LogitBias(biases), [1, 2, 3, 4])).toEqual([1, 4, 3, -96]);
  });

  it('that sets a least length forbids its ends until then', () => {
    const processor = new MinTokens(2, [0, 3]);
    expect(processed(processor, [1, 1, 1, 1])).toEqual([NO, 1, 1, NO]);
    expect(processed(processor, [1, 1, 1, 1], [1])).toEqual([NO, 1, 1, NO]);
    expect(processed(processor, [1, 1, 1, 1], [1])).toEqual([1, 1, 1, 1]);
  });

  it('that forbids words forbids the last token of one behind those before it, and of the answer only', () => {
    const words = [[3], [1, 2], [1, 1, 0]];
    expect(processed(new BadWords(words), [1, 1, 1, 1])).toEqual([1, 1, 1, NO]);
    expect(processed(new BadWords(words), [1, 1, 1, 1], [1])).toEqual([1, 1, NO, NO]);
    expect(processed(new BadWords(words), [1, 1, 1, 1], [2, 1, 1])).toEqual([NO, 1, NO, NO]);
    expect(processed(new BadWords(words), [1, 1, 1, 1], [1, 2])).toEqual([1, 1, 1, NO]);
  });

  it('that penalizes counts what was emitted, and the prompt for repetition alone', () => {
    const penalties = { repetition: 2, frequency: 0.5, presence: 0.25 };
    expect(processed(new OccurrencePenalties(penalties, [0, 1]), [4, -4, 4, 4], [1, 2, 2])).toEqual([2, -8.75, 0.75, 4]);
  });
});

describe('a chain of processors', () => {
  it('has ended when one of them has', () => {
    const link = (ended: boolean): LogitsProcessor => ({
      process: () => undefined,
      push: () => undefined,
      ended,
      [Symbol.dispose]: () => undefined,
    });
    expect(new ProcessorChain([link(false), link(true)]).ended).toBe(true);
    expect(new ProcessorChain([link(false), new MinTokens(1, [])]).ended).toBe(false);
  });
});

const VOCAB = 6;
const token = fc.integer({ min: 0, max: VOCAB - 1 });
/** Without -0, to which a sum with nothing makes a difference. */
const logit = fc.float({ min: -8, max: 8, noNaN: true }).map((value) => value + 0);

const ruleSets: fc.Arbitrary<TokenRules> = fc.record({
  structure: fc.constant(null),
  structureAfter: fc.constant(null),
  allowedTokenIds: fc.option(fc.uniqueArray(token, { minLength: 1 }), { freq: 2 }),
  badWords: fc.array(fc.array(token, { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
  minTokens: fc.nat(6),
  logitBias: fc.array(fc.tuple(token, fc.constantFrom(-100, -1.3, 0.7, 5)), { maxLength: 3 }).map((pairs) => new Map(pairs)),
  repetitionPenalty: fc.constantFrom(1, 1.3, 0.8),
  frequencyPenalty: fc.constantFrom(0, 0.9, -0.4),
  presencePenalty: fc.constantFrom(0, 1.1, -0.6),
});

it('rules together make of each row what their definition says', async () => {
  await fc.assert(
    fc.asyncProperty(
      ruleSets,
      fc.array(token, { minLength: 1, maxLength: 5 }),
      fc.array(fc.tuple(fc.array(logit, { minLength: VOCAB, maxLength: VOCAB }), token), { maxLength: 8 }),
      async (rules, promptTokens, steps) => {
        using compiled = await new AnswerRules({ vocabSize: VOCAB, eosTokenIds: [5] }, null).compile(
          request(promptTokens, { rules, stopTokenIds: [4] }),
        );
        const processor = compiled.makeProcessor();
        const answer: number[] = [];
        for (const [logits, next] of steps) {
          const row = Float32Array.from(logits);
          const expected = ruledRow(row, rules, promptTokens, answer, [5, 4]);
          processor?.process(row);
          expect([...row]).toEqual([...expected]);
          processor?.push(next);
          answer.push(next);
        }
      },
    ),
    { numRuns: 1000 },
  );
});

it('rules at their defaults are nothing to enforce', async () => {
  const rules = new AnswerRules({ vocabSize: VOCAB, eosTokenIds: [5] }, null);
  expect((await rules.compile(request([1], { rules: NO_RULES }))).makeProcessor()).toBeNull();
  expect((await rules.compile(request([1]))).makeProcessor()).toBeNull();
});
