/** Answers in a structure must not depend on the drafter either; and they have the structure. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GREEDY, type SamplingParams } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { AnswerStructure } from '../../src/core/token-rules.ts';
import { FIXED_LENGTH } from '../../src/decode/draft-length/fixed-length.ts';
import { decodeRound } from '../../src/decode/round.ts';
import { Sequence } from '../../src/decode/sequence.ts';
import type { Drafter } from '../../src/drafter/drafter.ts';
import { NgramDrafter } from '../../src/drafter/ngram/ngram-drafter.ts';
import { GrammarService } from '../../src/grammar/grammar-service.ts';
import { liveObjects } from '../../src/onnx/live-objects.ts';
import { loadTokenizer, type Tokenizer } from '../../src/text/tokenizer.ts';
import { EMBEDDED_DRAFTER, EMBEDDED_TARGET } from '../support/embedded-pair.ts';
import { PATIENT } from '../support/patient-limits.ts';
import { DflashPair } from './open-dflash.ts';

const CITY = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 24 },
    size: { enum: ['small', 'large'] },
    sights: { type: 'array', items: { type: 'integer', minimum: 1, maximum: 12 }, minItems: 1, maxItems: 2 },
  },
  required: ['name', 'size', 'sights'],
  additionalProperties: false,
};

const isCity = new Ajv2020().compile(CITY);
const CALL = {
  type: 'structural_tag',
  format: { type: 'tag', begin: '<call>', content: { type: 'json_schema', json_schema: CITY }, end: '</call>' },
};

interface Case {
  readonly structure: AnswerStructure;
  readonly prompt: string;
  /** Whether an answer that has ended is right. */
  readonly holds: (text: string) => boolean;
}

const CASES: readonly Case[] = [
  {
    structure: { kind: 'json-object' },
    prompt: 'Describe a dog as JSON.',
    holds: (text) => typeof JSON.parse(text) === 'object',
  },
  {
    structure: { kind: 'json-schema', schema: JSON.stringify(CITY) },
    prompt: 'Describe Paris as JSON.',
    holds: (text) => isCity(JSON.parse(text)),
  },
  {
    structure: { kind: 'regex', pattern: '(Mon|Tues|Wednes|Thurs|Fri)day, [0-9]{1,2} [A-Z][a-z]{2,8} [0-9]{4}' },
    prompt: 'When was the treaty signed? Answer with a date.',
    holds: (text) => /^(Mon|Tues|Wednes|Thurs|Fri)day, \d{1,2} [A-Z][a-z]{2,8} \d{4}$/.test(text),
  },
  {
    structure: { kind: 'choice', choices: ['positive', 'negative', 'neither of them'] },
    prompt: 'Is "I love it" positive or negative?',
    holds: (text) => ['positive', 'negative', 'neither of them'].includes(text),
  },
  {
    structure: { kind: 'grammar', ebnf: 'root ::= line{3}\nline ::= "- " [a-z]+ (" " [a-z]+){0,4} "\\n"' },
    prompt: 'List three animals.',
    holds: (text) => /^(- [a-z]+( [a-z]+){0,4}\n){3}$/.test(text),
  },
  {
    structure: { kind: 'structural-tag', tag: JSON.stringify(CALL) },
    prompt: 'Call the tool for Rome.',
    holds: (text) => isCity(JSON.parse(text.replace(/^<call>|<\/call>$/g, ''))),
  },
];

const SAMPLERS: readonly SamplingParams[] = [GREEDY, { temperature: 0.8, topP: 0.95, topK: 0, minP: 0, seed: 7n }];
const MAX_TOKENS = 40;
const EOS = 2;

describe('structured answers of the pair in the repository', () => {
  let pair: DflashPair;
  let tokenizer: Tokenizer;
  let service: GrammarService;
  const ngram = new NgramDrafter();

  beforeAll(async () => {
    pair = await DflashPair.open(EMBEDDED_DRAFTER, EMBEDDED_TARGET);
    tokenizer = await loadTokenizer(EMBEDDED_TARGET);
    service = new GrammarService({ tokenizer, vocabSize: pair.target.facts.vocabSize, eosTokenIds: [EOS], limits: PATIENT });
  }, 120_000);
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await pair[Symbol.asyncDispose]();
    expect(liveObjects()).toEqual({});
  });

  interface Answer {
    readonly tokens: readonly TokenId[];
    readonly steps: number;
  }

  async function answer({ structure, prompt }: Case, sampling: SamplingParams, drafter: Drafter | null): Promise<Answer> {
    const text = `<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n`;
    const compiled = await service.compile(structure);
    const { target } = pair;
    using sequence = new Sequence({
      promptTokens: tokenizer.encode(text, { addSpecialTokens: false }),
      sampling,
      stopRule: { push: (token) => (token === EOS ? { reason: 'stop', stopReason: token } : null) },
      maxTokens: MAX_TOKENS,
      limitedBy: 'max-tokens',
      cache: target.openCache(),
      drafting:
        drafter === null
          ? 'no-drafter'
          : { drafter, state: drafter.open(), limit: drafter.maxDraftTokens, lengths: FIXED_LENGTH },
      processor: service.open(compiled),
    });
    let steps = 0;
    while (sequence.ending === null) {
      const [outcome] = (await decodeRound(target, [sequence], new AbortController().signal)).sequences;
      expect(outcome?.failure).toBeNull();
      steps++;
    }
    expect(sequence.drafterError).toBeNull();
    return { tokens: sequence.tokens.slice(sequence.promptLength), steps };
  }

  const cases = CASES.flatMap((one) => SAMPLERS.map((sampling) => ({ ...one, sampling, kind: one.structure.kind })));
  let ended = 0;
  it.each(cases)('$kind at temperature $sampling.temperature', async ({ sampling, ...one }) => {
    const plain = await answer(one, sampling, null);
    const drafted = await answer(one, sampling, pair.drafter);
    expect(drafted.tokens).toEqual(plain.tokens);
    expect(drafted.steps).toBeLessThanOrEqual(plain.steps);
    if (sampling === GREEDY) expect((await answer(one, sampling, ngram)).tokens).toEqual(plain.tokens);
    ended += plain.tokens.at(-1) === EOS ? 1 : 0;
    if (plain.tokens.at(-1) !== EOS) return;
    const text = tokenizer.decode(plain.tokens, { skipSpecialTokens: true });
    expect(one.holds(text), text).toBe(true);
  });

  it('ends most of them', () => {
    expect(ended).toBeGreaterThan(cases.length / 2);
  });
});
