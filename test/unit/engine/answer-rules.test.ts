import { describe, expect, it } from 'vitest';
import type { TokenLogprobs } from '../../../src/core/token-logprobs.ts';
import { NO_RULES, type TokenRules } from '../../../src/core/token-rules.ts';
import { FIXED_LENGTH } from '../../../src/decode/draft-length/fixed-length.ts';
import { acceptanceByRates } from '../../../src/drafter/synthetic/synthetic-acceptance.ts';
import { SyntheticDrafter } from '../../../src/drafter/synthetic/synthetic-drafter.ts';
import type { AuditReport } from '../../../src/engine/engine.ts';
import type { CompiledStructure } from '../../../src/grammar/compiled-structure.ts';
import { tokenLogprobs } from '../../../src/sampling/token-logprobs.ts';
import { until } from '../../support/labelled-timeout.ts';
import { hashedLogits } from '../../support/scripted-logits.ts';
import { answerOf, answersTexts, EOS, encode, NEVER, openEngine, Recorder, request, VOCAB } from './engine-fixture.ts';

const ruled = (rules: Partial<TokenRules>) => ({ rules: { ...NO_RULES, ...rules } });

describe('rules that cannot be enforced are refused before the request is queued', () => {
  it.each<[string, Partial<TokenRules>, RegExp]>([
    ['allowed_token_ids', { allowedTokenIds: [1, VOCAB] }, /token ids of 0 to/],
    ['allowed_token_ids', { allowedTokenIds: [] }, /at least one token id/],
    ['bad_words', { badWords: [[1], [-1]] }, /got -1/],
    ['bad_words', { badWords: [[]] }, /at least one token/],
    ['logit_bias', { logitBias: new Map([[VOCAB, 1]]) }, /token ids/],
    ['logit_bias', { logitBias: new Map([[1, 101]]) }, /-100 to 100.*got 101/],
    ['logit_bias', { logitBias: new Map([[1, Number.NaN]]) }, /got NaN/],
    ['min_tokens', { minTokens: -1 }, /from 0/],
    ['min_tokens', { minTokens: 1.5 }, /whole number/],
    ['repetition_penalty', { repetitionPenalty: 0 }, /above 0/],
    ['frequency_penalty', { frequencyPenalty: -2.1 }, /-2 to 2/],
    ['presence_penalty', { presencePenalty: 3 }, /-2 to 2/],
    ['structure', { structure: { kind: 'json-object' } }, /json-object/],
  ])('%s: %o', async (param, rules, message) => {
    const { engine, recorder } = openEngine({ nextLogits: answersTexts({}) });
    const refusal = { code: 'invalid_request', message: expect.stringMatching(message), details: { param } };
    await expect(engine.checkRules(ruled(rules).rules)).rejects.toMatchObject(refusal);
    await expect(answerOf(engine.generate(request('Q', ruled(rules)), NEVER))).rejects.toMatchObject(refusal);
    expect(recorder.starts).toEqual([]);
  });

  it('and others are not', async () => {
    const { engine } = openEngine({ nextLogits: answersTexts({}) });
    await engine.checkRules({
      ...NO_RULES,
      allowedTokenIds: [0, VOCAB - 1],
      logitBias: new Map([[3, -100]]),
      frequencyPenalty: 2,
    });
  });
});

describe('rules that leave no token', () => {
  it('fail their request with what it had, and nobody else', async () => {
    const nextLogits = answersTexts({ 'A: ': 'ab cd' });
    const { engine, recorder, target } = openEngine({ nextLogits });
    const other = answerOf(engine.generate(request('A: ', { maxTokens: 12 }), NEVER));
    // The third token of any answer is forbidden.
    const allowed = encode('ab');
    const badWords = allowed.flatMap((x) => allowed.flatMap((y) => allowed.map((z) => [x, y, z])));
    const seen: number[] = [];
    let promptLogprobs = 0;
    const read = async () => {
      const stuck = request('A: ', { maxTokens: 12, promptLogprobs: 0, ...ruled({ allowedTokenIds: allowed, badWords }) });
      for await (const event of engine.generate(stuck, NEVER)) {
        if (event.type !== 'tokens') continue;
        seen.push(...event.tokens);
        promptLogprobs += event.promptLogprobs?.length ?? 0;
      }
    };
    await expect(read()).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/forbid all/) });
    expect(seen).toEqual(encode('ab'));
    expect(promptLogprobs).toBe(2);
    expect((await other).text).toBe('ab cd.......');
    expect(recorder.finishes.map(({ finish }) => finish.reason).sort()).toEqual(['error', 'length']);
    expect(target.openCaches).toBe(0);
  });

  it('or none that is finite fail it as well', async () => {
    const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 1, memory: 1 });
    const { engine } = openEngine({ nextLogits, drafter: null, maxContext: 2 * VOCAB });
    const asked = request(
      Array.from({ length: VOCAB }, (_, id) => id),
      { maxTokens: 4, ...ruled({ repetitionPenalty: 1e-39 }) },
    );
    await expect(answerOf(engine.generate(asked, NEVER))).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/finite/),
    });
  });
});

it('a processor that cannot be opened fails its request and leaves nothing open', async () => {
  const grammars = {
    compile: async () => ({ [Symbol.dispose]: () => undefined }) as CompiledStructure,
    open: () => {
      throw new Error('no room');
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const { engine, target, drafter } = openEngine({ nextLogits: answersTexts({}), parts: { grammars } });
  const asked = request('Q', ruled({ structure: { kind: 'json-object' } }));
  await expect(answerOf(engine.generate(asked, NEVER))).rejects.toThrow('no room');
  expect([target.openCaches, drafter?.openStates]).toEqual([0, 0]);
});

describe('a least length', () => {
  const nextLogits = answersTexts({ 'E: ': 'ab<|end|>', 'S: ': 'aSTOP bSTOP c', 'T: ': 'xSTOP' });

  it.each([0, 2, 3, 7])('of %i tokens keeps the end-of-sequence token out until then', async (minTokens) => {
    const { engine } = openEngine({ nextLogits });
    const { tokens, finish } = await answerOf(
      engine.generate(request('E: ', { maxTokens: 9, ...ruled({ minTokens }) }), NEVER),
    );
    // Behind its text the target says nothing but dots, and the end only where it has its place.
    if (minTokens <= 2) expect(tokens).toEqual(encode('ab<|end|>'));
    else expect(tokens).not.toContain(EOS);
    expect(finish.reason).toBe(minTokens <= 2 ? 'stop' : 'length');
  });

  it.each([
    ['in front of it is text', 6, 'aSTOP b'],
    ['that ends at it is text', 5, 'aSTOP b'],
    ['that ends behind it counts, also where it begins before', 4, 'a'],
    ['counts from the beginning without it', 0, 'a'],
  ])('a stop string %s', async (_, minTokens, text) => {
    const { engine } = openEngine({ nextLogits });
    const asked = request('S: ', { maxTokens: 14, stopStrings: ['STOP'], ...ruled({ minTokens }) });
    const answer = await answerOf(engine.generate(asked, NEVER));
    expect(answer.text).toBe(text);
    expect(answer.finish).toMatchObject({ reason: 'stop', stopReason: 'STOP' });
  });

  it('forbids stop tokens, and end-of-sequence ones that would not end the answer', async () => {
    const { engine } = openEngine({ nextLogits });
    const [b] = encode('b');
    const stop = request('E: ', { maxTokens: 5, stopTokenIds: [b!], ...ruled({ minTokens: 2 }) });
    expect((await answerOf(engine.generate(stop, NEVER))).tokens[1]).not.toBe(b);
    const ignoring = request('E: ', { maxTokens: 5, ignoreEos: true, ...ruled({ minTokens: 4 }) });
    expect((await answerOf(engine.generate(ignoring, NEVER))).tokens).not.toContain(EOS);
  });
});

it('stand-ins of a synthetic draft have the logprobs of their rows', async () => {
  const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 5, memory: 3 });
  const drafter = new SyntheticDrafter(acceptanceByRates([1, 1, 0]));
  const drafters = [{ name: 'synthetic', drafter, draftTokens: 3, lengths: FIXED_LENGTH }];
  const { engine } = openEngine({ nextLogits, drafter: null, parts: { drafters } });
  const asked = request([1, 2, 3], { maxTokens: 9, ignoreEos: true, logprobs: 1 });
  const told: TokenLogprobs[] = [];
  const tokens: number[] = [];
  for await (const event of engine.generate(asked, NEVER)) {
    if (event.type !== 'tokens') continue;
    tokens.push(...event.tokens);
    told.push(...(event.logprobs ?? []));
  }
  const rows = tokens.map((token, i) => tokenLogprobs(nextLogits([1, 2, 3, ...tokens.slice(0, i)]), token, 1));
  expect(told).toEqual(rows);
  expect(told.some(({ rank }) => rank > 1)).toBe(true);
});

it('a self-audit decodes with the same rules', async () => {
  const audits: AuditReport[] = [];
  const observer = Object.assign(new Recorder(), { onAudit: (report: AuditReport) => audits.push(report) });
  const nextLogits = hashedLogits({ vocabSize: VOCAB, seed: 5, memory: 3 });
  const { engine } = openEngine({ nextLogits, parts: { auditRate: 1, observers: [observer] } });
  const rules = { repetitionPenalty: 1.5, minTokens: 3, badWords: [[1]], logitBias: new Map([[7, 4]]) };
  const asked = request([1, 2, 3], { maxTokens: 20, ignoreEos: true, ...ruled(rules) });
  const { tokens } = await answerOf(engine.generate(asked, NEVER));
  await until('an audit', () => audits.length === 1);
  expect(audits[0]).toMatchObject({ outcome: 'equal', error: null });
  const unruled = await answerOf(engine.generate(request([1, 2, 3], { maxTokens: 20, ignoreEos: true }), NEVER));
  expect(tokens).not.toEqual(unruled.tokens);
});
