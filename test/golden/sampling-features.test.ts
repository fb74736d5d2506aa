/** Every feature of sampling with every drafter, alone and in company: tokens, text and logprobs are plain decoding's, bit for bit. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FinishEvent } from '../../src/core/decode-event.ts';
import { GREEDY } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { TokenLogprobs } from '../../src/core/token-logprobs.ts';
import { NO_RULES, type TokenRules } from '../../src/core/token-rules.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { tokenLogprobs } from '../../src/sampling/token-logprobs.ts';
import { openTestbed, TESTBED_DRAFTER, TESTBED_TARGET, testbedPrompts } from '../support/testbed-engine.ts';
import { tellText } from '../support/told-texts.ts';

type Feature = Partial<GenerateRequest>;

/** The model is sure of itself: with less of it, it says the same. */
const SAMPLED = { ...GREEDY, temperature: 1.6, seed: 11n };
/** In no step of a prompt is room for all of it. */
const MAX_ROWS = 24;
const MAX_TOKENS = 18;
const ruled = (rules: Partial<TokenRules>): Feature => ({ rules: { ...NO_RULES, ...rules } });
/** Of the 1024, every third. */
const THIRD = Array.from({ length: 341 }, (_, i) => i * 3);
const BIAS = new Map(THIRD.map((id) => [id, id % 2 === 0 ? 3 : -100]));
const BAD_WORDS = [...THIRD.slice(90, 120).map((id) => [id]), ...THIRD.slice(120).map((id) => [id + 1, id])];

const PAIR = {
  type: 'object',
  properties: { a: { enum: ['one', 'another'] }, b: { type: 'array', items: { type: 'boolean' }, minItems: 2 } },
  required: ['a', 'b'],
  additionalProperties: false,
};

/** Greedy unless it says otherwise. */
const FEATURES: Readonly<Record<string, Feature>> = {
  greedy: {},
  temperature: { sampling: SAMPLED },
  'top-p': { sampling: { ...SAMPLED, topP: 0.7 } },
  'top-k': { sampling: { ...SAMPLED, temperature: 1.5, topK: 5 } },
  'min-p': { sampling: { ...SAMPLED, minP: 0.1 } },
  seed: { sampling: { ...SAMPLED, seed: 2n ** 63n } },
  'repetition penalty': ruled({ repetitionPenalty: 1.4 }),
  'repetition penalty below 1': ruled({ repetitionPenalty: 0.7 }),
  'frequency penalty': ruled({ frequencyPenalty: 2 }),
  'presence penalty': ruled({ presencePenalty: 2 }),
  'negative penalties': ruled({ frequencyPenalty: -2, presencePenalty: -2 }),
  'logit bias': ruled({ logitBias: BIAS }),
  'allowed ids': ruled({ allowedTokenIds: THIRD }),
  'bad words': ruled({ badWords: BAD_WORDS }),
  'min tokens': { ...ruled({ minTokens: 90 }), ignoreEos: false, maxTokens: 100 },
  'stop ids': { stopTokenIds: THIRD.slice(100) },
  'stop strings': { stopStrings: ['we', 'name', 'the'] },
  'stop strings behind min tokens': { ...ruled({ minTokens: 9 }), stopStrings: ['a', 'e', ' '], includeStopString: true },
  'end of sequence': { ignoreEos: false, maxTokens: 100 },
  'a regular expression': ruled({ structure: { kind: 'regex', pattern: '[a-z]{4,8}( [a-z]{2,6}){3,5}\\.' } }),
  'a JSON object': ruled({ structure: { kind: 'json-object' } }),
  'a JSON schema': ruled({ structure: { kind: 'json-schema', schema: JSON.stringify(PAIR) } }),
  'a grammar': ruled({ structure: { kind: 'grammar', ebnf: 'root ::= word (", " word)* "."\nword ::= [a-z]{3,7}' } }),
  'structural tags': ruled({
    structure: {
      kind: 'structural-tag',
      tag: JSON.stringify({
        type: 'structural_tag',
        format: { type: 'tag', begin: '<pair>', content: { type: 'json_schema', json_schema: PAIR }, end: '</pair>' },
      }),
    },
  }),
  choices: ruled({ structure: { kind: 'choice', choices: ['the first of them', 'the second', 'another'] } }),
  logprobs: { logprobs: 5 },
  'logprobs of the chosen alone': { logprobs: 0, sampling: SAMPLED },
  'prompt logprobs': { promptLogprobs: 3 },
  'prompt logprobs and logprobs': { promptLogprobs: 0, logprobs: 20, sampling: SAMPLED },
  'all penalties, sampled, with logprobs': {
    ...ruled({ repetitionPenalty: 1.2, frequencyPenalty: 0.4, presencePenalty: 0.3, logitBias: BIAS }),
    sampling: { temperature: 1.1, topP: 0.9, topK: 40, minP: 0.01, seed: 5n },
    logprobs: 2,
  },
  'masks together, sampled, with logprobs': {
    ...ruled({ allowedTokenIds: THIRD, badWords: BAD_WORDS, minTokens: 12, logitBias: BIAS, presencePenalty: 1 }),
    sampling: { ...SAMPLED, topK: 30 },
    ignoreEos: false,
    stopTokenIds: [300],
    logprobs: 1,
    promptLogprobs: 1,
  },
  'a structure with penalties, sampled': {
    ...ruled({ structure: { kind: 'regex', pattern: '([a-z]+,? )+' }, repetitionPenalty: 1.3, logitBias: BIAS }),
    sampling: SAMPLED,
    logprobs: 3,
  },
};
const DRAFTERS = ['dflash', 'ngram', 'draft-model', 'told-oracle', 'told-liar'];

interface Answer {
  readonly tokens: readonly TokenId[];
  readonly text: string;
  readonly logprobs: readonly TokenLogprobs[];
  readonly promptLogprobs: readonly TokenLogprobs[];
  readonly reason: FinishEvent['reason'];
  readonly stopReason: FinishEvent['stopReason'];
}

interface Told {
  readonly answer: Answer;
  readonly finish: FinishEvent;
}

const cacheDir = mkdtempSync(join(tmpdir(), 'blockdraft-features-'));
const plain = new Map<string, Answer>();
let opened: OpenedEngine;
let prompts: readonly (readonly TokenId[])[];
let requests = 0;

beforeAll(async () => {
  const modules = resolve(import.meta.dirname, '../support/modules');
  opened = await openTestbed({
    cacheDir,
    drafters: [`dflash=${TESTBED_DRAFTER}`, 'ngram', `draft-model=${TESTBED_TARGET}`],
    drafterModules: [join(modules, 'told-oracle.ts'), join(modules, 'told-liar.ts')],
    maxRows: MAX_ROWS,
  });
  const { engine } = opened;
  const strange = 'def f(x): return x; the moon is far; 7 8 9 10 and so on, but who knows what is behind the river today';
  const texts = [strange, engine.text.renderChat(testbedPrompts()[30]!.messages)];
  prompts = texts.map((text) => engine.text.encode(text, { addSpecialTokens: false }));
});

afterAll(async () => {
  await opened.engine[Symbol.asyncDispose]();
  rmSync(cacheDir, { recursive: true });
  expect(liveObjects()).toEqual({});
});

async function answerOf(name: string, prompt: number, drafter: string): Promise<Told> {
  const request: GenerateRequest = {
    id: `feature-${++requests}`,
    promptTokens: prompts[prompt]!,
    sampling: GREEDY,
    maxTokens: MAX_TOKENS,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: true,
    skipSpecialTokens: true,
    drafter,
    draftTokens: null,
    ...FEATURES[name],
  };
  const tokens: TokenId[] = [];
  const logprobs: TokenLogprobs[] = [];
  const promptLogprobs: TokenLogprobs[] = [];
  let text = '';
  for await (const event of opened.engine.generate(request, new AbortController().signal)) {
    if (event.type === 'finish') {
      const { reason, stopReason } = event;
      return { answer: { tokens, text, logprobs, promptLogprobs, reason, stopReason }, finish: event };
    }
    tokens.push(...event.tokens);
    text += event.text;
    logprobs.push(...(event.logprobs ?? []));
    promptLogprobs.push(...(event.promptLogprobs ?? []));
  }
  throw new Error('Expected an end, got none');
}

/** Each answer alone and without speculation, made once. */
async function plainly(name: string, prompt: number): Promise<Answer> {
  const key = `${name} ${prompt}`;
  const known = plain.get(key);
  if (known !== undefined) return known;
  const { answer } = await answerOf(name, prompt, 'none');
  tellText([...prompts[prompt]!, ...answer.tokens]);
  plain.set(key, answer);
  return answer;
}

const accepted = ({ finish }: Told) => finish.speculation.rounds.reduce((sum, round) => sum + round.accepted, 0);

describe.each(Object.keys(FEATURES))('%s', (name) => {
  it('is what it is in plain decoding, with every drafter', async () => {
    const feature = FEATURES[name]!;
    const expected = await plainly(name, 0);
    expect(expected.logprobs).toHaveLength(feature.logprobs === undefined ? 0 : expected.tokens.length);
    expect(expected.promptLogprobs).toHaveLength(feature.promptLogprobs === undefined ? 0 : prompts[0]!.length - 1);
    for (const drafter of DRAFTERS) {
      const told = await answerOf(name, 0, drafter);
      expect(told.answer, drafter).toEqual(expected);
      expect(told.finish.speculation.drafterError).toBeNull();
      if (drafter === 'told-liar') expect(accepted(told)).toBe(0);
      if (drafter === 'told-oracle' && expected.tokens.length > 4) {
        expect(accepted(told)).toBeGreaterThan(expected.tokens.length / 2);
      }
    }
  });

  it('does something', async () => {
    const own = await Promise.all([...prompts.keys()].map((prompt) => plainly(name, prompt)));
    const greedy = await Promise.all([...prompts.keys()].map((prompt) => plainly('greedy', prompt)));
    if (name !== 'greedy') expect(own).not.toEqual(greedy);
  });
});

it('logprobs are those of the rows of one sequence that is computed by itself', async () => {
  const name = 'prompt logprobs and logprobs';
  const { tokens, logprobs, promptLogprobs } = await plainly(name, 0);
  const all = [...prompts[0]!, ...tokens];
  const told: TokenLogprobs[] = [];
  using cache = opened.target.openCache();
  for (let start = 0; start < all.length - 1; start += MAX_ROWS) {
    const chunk = all.slice(start, Math.min(start + MAX_ROWS, all.length - 1));
    const result = await opened.target.step([{ cache, tokens: chunk, logitsFrom: 0 }]);
    for (const row of chunk.keys()) {
      const rivals = told.length < prompts[0]!.length - 1 ? 0 : 20;
      told.push(tokenLogprobs(result.logits(0, row), all[start + row + 1]!, rivals));
    }
  }
  expect([...promptLogprobs, ...logprobs]).toEqual(told);
});

it.each([...DRAFTERS, 'all of them'])('all features share the steps, with %s', async (drafter) => {
  const asked = Object.keys(FEATURES).flatMap((name) => [...prompts.keys()].map((prompt) => ({ name, prompt })));
  for (const { name, prompt } of asked) await plainly(name, prompt);
  const drafterOf = (i: number) => (drafter === 'all of them' ? ['none', ...DRAFTERS][i % (DRAFTERS.length + 1)]! : drafter);
  const told = await Promise.all(asked.map(({ name, prompt }, i) => answerOf(name, prompt, drafterOf(i))));
  for (const [i, { name, prompt }] of asked.entries()) {
    expect(told[i]!.answer, `${name}, ${drafterOf(i)}, prompt ${prompt}`).toEqual(await plainly(name, prompt));
  }
  // Prompts that are told of are computed, others may begin with what is known of them.
  for (const [i, { name }] of asked.entries()) {
    if (FEATURES[name]!.promptLogprobs !== undefined) expect(told[i]!.finish.cachedTokens).toBe(0);
  }
  expect(told.some(({ finish }) => finish.cachedTokens > 0)).toBe(true);
});
