/** Request fields that rule which tokens an answer may have, beside its structure. */
import { z } from 'zod';
import type { TokenId } from '../../core/token.ts';
import type { TokenRules } from '../../core/token-rules.ts';
import type { Engine } from '../../engine/engine.ts';
import type { RequestLimits } from '../server-config.ts';
import { boundedArray, boundedRecord } from './bounded.ts';
import { fieldError } from './parse-request.ts';
import { checkTokenRange } from './token-range.ts';

const MAX_PENALTY = 2;
/** Beyond these a logit would leave what 32 bits can hold. */
const REPETITION = { min: 0.01, max: 100 } as const;
const MAX_BIAS = 100;

const penalty = () =>
  z.number().min(-MAX_PENALTY).max(MAX_PENALTY).nullish().describe(`a number from -${MAX_PENALTY} to ${MAX_PENALTY}`);

/** Schemas by field name; each description completes the sentence "Expected <field> to be …". */
export function ruleFields(limits: RequestLimits) {
  return {
    presence_penalty: penalty(),
    frequency_penalty: penalty(),
    repetition_penalty: z
      .number()
      .min(REPETITION.min)
      .max(REPETITION.max)
      .nullish()
      .describe(`a number from ${REPETITION.min} to ${REPETITION.max}`),
    logit_bias: boundedRecord(/^\d{1,10}$/, z.number().min(-MAX_BIAS).max(MAX_BIAS), limits.maxLogitBias)
      .nullish()
      .describe(`an object of up to ${limits.maxLogitBias} token ids, each with a number from -${MAX_BIAS} to ${MAX_BIAS}`),
    min_tokens: z.int().min(0).nullish().describe('a whole number from 0'),
    bad_words: boundedArray(z.string().regex(/\S/).max(limits.maxStopLength), limits.maxBadWords, 0)
      .nullish()
      .describe(
        `a list of up to ${limits.maxBadWords} words, each of 1 to ${limits.maxStopLength} characters and not blank, ` +
          `and of ${limits.maxBadWordsLength} together`,
      ),
    allowed_token_ids: boundedArray(z.int().min(0), limits.maxAllowedTokenIds)
      .nullish()
      .describe(`a list of 1 to ${limits.maxAllowedTokenIds} token ids`),
  } as const;
}

type RuleFields = z.infer<z.ZodObject<ReturnType<typeof ruleFields>>>;

/** The rules as a caller writes them: words are not tokens yet. */
export interface RuleParams extends Omit<TokenRules, 'badWords' | 'structure' | 'structureAfter'> {
  readonly badWords: readonly string[];
}

/**
 * @param maxTokens null: what the context leaves
 * @throws AppError `invalid_request` for fields that contradict each other, or are too long together
 */
export function toRuleParams(
  fields: RuleFields,
  maxTokens: number | null,
  { maxBadWordsLength }: Pick<RequestLimits, 'maxBadWordsLength'>,
): RuleParams {
  const minTokens = fields.min_tokens ?? 0;
  if (maxTokens !== null && minTokens > maxTokens)
    throw fieldError('min_tokens', `at most max_tokens (${maxTokens})`, minTokens);
  const length = (fields.bad_words ?? []).reduce((sum, word) => sum + word.length, 0);
  if (length > maxBadWordsLength)
    throw fieldError('bad_words', `words of at most ${maxBadWordsLength} characters together`, length);
  return {
    allowedTokenIds: fields.allowed_token_ids ?? null,
    logitBias: new Map(Object.entries(fields.logit_bias ?? {}).map(([id, bias]) => [Number(id), bias])),
    minTokens,
    badWords: fields.bad_words ?? [],
    repetitionPenalty: fields.repetition_penalty ?? 1,
    frequencyPenalty: fields.frequency_penalty ?? 0,
    presencePenalty: fields.presence_penalty ?? 0,
  };
}

/**
 * The rules in the tokens of an engine.
 * @throws AppError `invalid_request` for ids that are not its own, and for words that it cannot write; AbortedError
 */
export async function toTokenRules(
  { badWords, ...rules }: RuleParams,
  engine: Engine,
  signal: AbortSignal,
): Promise<Omit<TokenRules, 'structure' | 'structureAfter'>> {
  checkTokenRange('allowed_token_ids', rules.allowedTokenIds ?? [], engine.info);
  checkTokenRange('logit_bias', rules.logitBias.keys(), engine.info);
  return { ...rules, badWords: await wordTokens(badWords, engine, signal) };
}

/** Each at the beginning of a text and behind a blank, where most vocabularies write a word differently. */
async function wordTokens(
  words: readonly string[],
  engine: Engine,
  signal: AbortSignal,
): Promise<readonly (readonly TokenId[])[]> {
  const spellings = words.map((word) => word.trimStart()).flatMap((text) => [text, ` ${text}`]);
  const tokens = await engine.text.encodeAll(spellings, { addSpecialTokens: false }, signal);
  return words.flatMap((word, i) => {
    const [bare, spaced] = [tokens[2 * i]!, tokens[2 * i + 1]!];
    if (bare.length === 0) throw fieldError(`bad_words[${i}]`, 'a word that the vocabulary can write', word);
    return spaced.join() === bare.join() ? [bare] : [bare, spaced];
  });
}
