/** Whatever rules a request has, whoever drafts and whoever shares the steps: tokens and logprobs are those of plain decoding. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { GREEDY, type SamplingParams } from '../../../src/core/sampling-params.ts';
import type { TokenId } from '../../../src/core/token.ts';
import type { TokenLogprobs } from '../../../src/core/token-logprobs.ts';
import { NO_RULES, type TokenRules } from '../../../src/core/token-rules.ts';
import { NgramDrafter } from '../../../src/drafter/ngram/ngram-drafter.ts';
import type { Engine, GenerateRequest } from '../../../src/engine/engine.ts';
import { LiarDrafter } from '../../support/liar-drafter.ts';
import { OracleDrafter } from '../../support/oracle-drafter.ts';
import { type PlainAnswer, plainAnswer } from '../../support/plain-rules.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import type { NextLogits } from '../../support/scripted-target.ts';
import { WrongFromDrafter } from '../../support/wrong-from-drafter.ts';
import { EOS, NEVER, openEngine, request, VOCAB } from './engine-fixture.ts';

/** Few tokens, so that rules meet and drafts come true. */
const LIVELY = [0, 1, 2, 3, 4, EOS];
const token = fc.constantFrom(...LIVELY);
/** Long enough to be worth keeping. */
const OPENING = Array.from({ length: 20 }, (_, i) => i % 4);

function fewTokens(seed: number, memory: number): NextLogits {
  const lively = hashedLogits({ vocabSize: LIVELY.length, seed, memory });
  return (prefix) => {
    const row = new Float32Array(VOCAB).fill(-30);
    for (const [i, logit] of lively(prefix).entries()) row[LIVELY[i]!] = logit;
    return row;
  };
}

const rules: fc.Arbitrary<TokenRules> = fc.record({
  structure: fc.constant(null),
  structureAfter: fc.constant(null),
  allowedTokenIds: fc.option(fc.uniqueArray(token, { minLength: 1, maxLength: 4 }), { freq: 2 }),
  badWords: fc.array(fc.array(token, { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
  minTokens: fc.nat(8),
  logitBias: fc.array(fc.tuple(token, fc.constantFrom(-100, -1.3, 0.7, 5)), { maxLength: 3 }).map((pairs) => new Map(pairs)),
  repetitionPenalty: fc.constantFrom(1, 1.3, 0.8),
  frequencyPenalty: fc.constantFrom(0, 0.9, -0.4),
  presencePenalty: fc.constantFrom(0, 1.1, -0.6),
});

const sampling: fc.Arbitrary<SamplingParams> = fc.oneof(
  fc.constant(GREEDY),
  fc.record({
    temperature: fc.constantFrom(0.5, 1, 1.7),
    topP: fc.constantFrom(0.6, 1),
    topK: fc.constantFrom(0, 3),
    minP: fc.constantFrom(0, 0.1),
    seed: fc.bigInt({ min: 0n, max: 3n }),
  }),
);

const asked: fc.Arbitrary<Partial<GenerateRequest> & { readonly promptTokens: readonly TokenId[] }> = fc.record({
  promptTokens: fc
    .tuple(fc.boolean(), fc.array(token, { minLength: 1, maxLength: 14 }))
    .map(([long, own]) => [...(long ? OPENING : []), ...own]),
  sampling,
  rules: fc.oneof({ weight: 4, arbitrary: rules }, fc.constant(NO_RULES)),
  maxTokens: fc.integer({ min: 1, max: 20 }),
  ignoreEos: fc.boolean(),
  stopTokenIds: fc.array(token, { maxLength: 1 }),
  drafter: fc.constantFrom('none', 'ngram', 'oracle', 'liar', 'wrong-from'),
  logprobs: fc.constantFrom(null, 0, 3),
  promptLogprobs: fc.constantFrom(null, null, 0, 2),
});

interface Served extends PlainAnswer {
  readonly cachedTokens: number;
  readonly accepted: number;
}

async function serve(engine: Engine, one: GenerateRequest): Promise<Served> {
  const tokens: TokenId[] = [];
  const logprobs: TokenLogprobs[] = [];
  const promptLogprobs: TokenLogprobs[] = [];
  try {
    for await (const event of engine.generate({ ...one, id: request([]).id }, NEVER)) {
      if (event.type === 'finish') {
        const accepted = event.speculation.rounds.reduce((sum, round) => sum + round.accepted, 0);
        return { tokens, logprobs, promptLogprobs, stuck: false, cachedTokens: event.cachedTokens, accepted };
      }
      tokens.push(...event.tokens);
      logprobs.push(...(event.logprobs ?? []));
      promptLogprobs.push(...(event.promptLogprobs ?? []));
    }
    throw new Error('Expected an end, got none');
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request' });
    return { tokens, logprobs, promptLogprobs, stuck: true, cachedTokens: 0, accepted: 0 };
  }
}

/** What a property of nothing would not have seen. */
const seen = { accepted: 0, cachedTokens: 0, stuck: 0, logprobs: 0, promptLogprobs: 0 };

it('is answered as plain decoding answers it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ seed: fc.nat(), memory: fc.constantFrom(1, 2, 3) }),
      fc.integer({ min: 4, max: 24 }),
      fc.array(asked, { minLength: 1, maxLength: 6 }),
      async ({ seed, memory }, maxRows, all) => {
        const nextLogits = fewTokens(seed, memory);
        const requests = all.map(({ promptTokens, ...options }) => request(promptTokens, options));
        const plain = requests.map((one) => plainAnswer(nextLogits, [EOS], one));
        const texts = requests.map(({ promptTokens }, i) => [...promptTokens, ...plain[i]!.tokens]);
        const next = (prefix: readonly TokenId[]) => {
          const known = texts.find((text) => prefix.every((token, i) => text[i] === token));
          return known?.[prefix.length] ?? 0;
        };
        const knowing = { next, vocabSize: VOCAB, maxDraftTokens: 6 };
        const { engine } = openEngine({
          nextLogits,
          maxRows,
          maxCaches: 40,
          drafter: new OracleDrafter(knowing),
          more: [
            new NgramDrafter({ maxDraftTokens: 6, maxMatch: 3, minMatch: 1 }),
            new LiarDrafter(knowing),
            new WrongFromDrafter({ ...knowing, wrongFrom: 2 }),
          ],
          limits: { prefixCacheBytes: 1e6 },
          parts: { split: null },
        });
        // The second time beginnings are known.
        for (let time = 0; time < 2; time++) {
          const served = await Promise.all(requests.map((one) => serve(engine, one)));
          for (const [i, { cachedTokens, accepted, ...answer }] of served.entries()) {
            const { logprobs, promptLogprobs } = requests[i]!;
            const expected = plain[i]!;
            // An answer that ends with nothing has no event to bring its prompt's.
            const began = expected.tokens.length > 0;
            expect(answer).toEqual({
              ...expected,
              logprobs: logprobs === null ? [] : expected.logprobs,
              promptLogprobs: promptLogprobs === null || !began ? [] : expected.promptLogprobs,
            });
            seen.accepted += accepted;
            seen.cachedTokens += cachedTokens;
            seen.stuck += Number(answer.stuck);
            seen.logprobs += answer.logprobs.length;
            seen.promptLogprobs += answer.promptLogprobs.length;
          }
        }
      },
    ),
    { numRuns: 150 },
  );
  expect(seen.accepted).toBeGreaterThan(500);
  expect(seen.cachedTokens).toBeGreaterThan(300);
  expect(seen.stuck).toBeGreaterThan(8);
  expect(seen.logprobs).toBeGreaterThan(500);
  expect(seen.promptLogprobs).toBeGreaterThan(300);
}, 60_000);
