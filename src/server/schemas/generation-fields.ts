/** The request fields that both routes share, and what they mean to the engine. */
import { z } from 'zod';
import { REQUEST_ID_PATTERN } from '../request-id.ts';
import type { RequestLimits } from '../server-config.ts';
import { type AnswerDetails, DETAIL_FIELDS, toAnswerDetails } from './detail-fields.ts';
import { NEUTRAL_STREAM_FIELDS } from './neutral-field.ts';
import { fieldError } from './parse-request.ts';
import { type RuleParams, ruleFields, toRuleParams } from './rule-fields.ts';
import { type AskedStructure, structureFields, toStructure } from './structure-fields.ts';

const MAX_DRAFTER_NAME = 256;
const MAX_DRAFT_TOKENS = 1024;
const MAX_CACHE_SALT = 256;

const flag = () => z.boolean().nullish().describe('true or false');

/** Schemas by field name; each description completes the sentence "Expected <field> to be …". */
export function generationFields(limits: RequestLimits) {
  const stopString = z.string().min(1).max(limits.maxStopLength);
  return {
    model: z.string().nullish().describe('the name of the served model'),
    temperature: z.number().min(0).max(2).nullish().describe('a number from 0 to 2'),
    top_p: z.number().gt(0).max(1).nullish().describe('a number above 0 and up to 1'),
    top_k: z.int().min(-1).nullish().describe('a whole number from 1, or -1 or 0 for no limit'),
    min_p: z.number().min(0).max(1).nullish().describe('a number from 0 to 1'),
    // JSON numbers beyond 2^53 arrive rounded, and a rounded seed could not be reported truly.
    seed: z.int().nullish().describe('a whole number between -(2^53 - 1) and 2^53 - 1'),
    stop: z
      .union([stopString, z.array(stopString).max(limits.maxStopStrings)])
      .nullish()
      .describe(
        `a string or a list of up to ${limits.maxStopStrings} strings, each of 1 to ${limits.maxStopLength} characters`,
      ),
    stop_token_ids: z
      .array(z.int().min(0))
      .max(limits.maxStopTokenIds)
      .nullish()
      .describe(`a list of up to ${limits.maxStopTokenIds} token ids`),
    ignore_eos: flag(),
    include_stop_str_in_output: flag(),
    skip_special_tokens: flag(),
    n: z.int().min(1).max(limits.maxChoices).nullish().describe(`a whole number from 1 to ${limits.maxChoices}`),
    stream: flag(),
    stream_options: z
      .strictObject({ include_usage: flag(), continuous_usage_stats: flag(), ...NEUTRAL_STREAM_FIELDS })
      .nullish()
      .describe('an object with include_usage and continuous_usage_stats'),
    user: z.string().nullish().describe('a string'),
    request_id: z
      .string()
      .regex(REQUEST_ID_PATTERN)
      .nullish()
      .describe('1 to 128 letters, digits, dots, underscores and dashes'),
    speculative: flag(),
    drafter: z.string().max(MAX_DRAFTER_NAME).nullish().describe('the name of a drafter, or none'),
    draft_tokens: z.int().min(0).max(MAX_DRAFT_TOKENS).nullish().describe(`a whole number from 0 to ${MAX_DRAFT_TOKENS}`),
    priority: z.int().nullish().describe('a whole number; lower ones are served earlier'),
    cache_salt: z.string().min(1).max(MAX_CACHE_SALT).nullish().describe(`1 to ${MAX_CACHE_SALT} characters`),
    add_special_tokens: flag(),
    truncate_prompt_tokens: z
      .union([z.literal(-1), z.int().min(1)])
      .nullish()
      .describe('a whole number from 1, or -1 for what the context has room for'),
    ...ruleFields(limits),
    ...structureFields(limits),
    ...DETAIL_FIELDS,
  } as const;
}

/** A limit on the answer's length, as both of OpenAI's names spell it. */
export const maxTokensField = () => z.int().min(1).nullish().describe('a whole number from 1');

type ParsedFields = z.infer<z.ZodObject<ReturnType<typeof generationFields>>>;

/** The shared fields after defaults; a sampling value that is undefined is the model's to choose. */
export interface GenerationParams {
  readonly model: string | null;
  /** Null: what the context leaves. */
  readonly maxTokens: number | null;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
  readonly minP: number | undefined;
  readonly seed: number | null;
  readonly stopStrings: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly ignoreEos: boolean;
  readonly includeStopString: boolean;
  readonly skipSpecialTokens: boolean;
  /** Answers per prompt. */
  readonly n: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly requestId: string | null;
  /** Null: the default one; `none`: plain decoding. */
  readonly drafter: string | null;
  readonly draftTokens: number | null;
  /** Lower is served earlier. */
  readonly priority: number;
  /** Null: prefixes are shared with all who have none. */
  readonly cacheSalt: string | null;
  /** Null: as the route is used to. */
  readonly addSpecialTokens: boolean | null;
  /** Tokens at the end of the prompt that are kept; -1: as many as leave room for the answer; null: all. */
  readonly truncatePromptTokens: number | null;
  readonly rules: RuleParams;
  readonly structure: AskedStructure | null;
  readonly details: AnswerDetails;
}

/** What each route says in its own words. */
export interface RouteParams {
  /** Null: what the context leaves. */
  readonly maxTokens: number | null;
  /** How many rivals to tell of each token; null: no logprobs. */
  readonly logprobs: number | null;
}

/**
 * The fields as the engine will want them.
 * @throws AppError `invalid_request` for fields that contradict each other.
 */
export function toGenerationParams(
  fields: ParsedFields,
  { maxTokens, logprobs }: RouteParams,
  limits: RequestLimits,
): GenerationParams {
  const { stream_options: options } = fields;
  const continuousUsage = options?.continuous_usage_stats ?? false;
  const includeUsage = options?.include_usage ?? continuousUsage;
  if (includeUsage && !fields.stream) throw fieldError('stream_options', 'absent unless stream is true', options);
  if (continuousUsage && !includeUsage) {
    throw fieldError('stream_options.continuous_usage_stats', 'absent or false where include_usage is false', true);
  }
  if (fields.stream && fields.prompt_logprobs != null) {
    throw fieldError('prompt_logprobs', 'absent when stream is true', fields.prompt_logprobs);
  }
  const topK = fields.top_k ?? undefined;
  const stop = fields.stop ?? [];
  return {
    model: fields.model ?? null,
    maxTokens,
    temperature: fields.temperature ?? undefined,
    topP: fields.top_p ?? undefined,
    topK: topK === -1 ? 0 : topK,
    minP: fields.min_p ?? undefined,
    seed: fields.seed ?? null,
    stopStrings: typeof stop === 'string' ? [stop] : stop,
    stopTokenIds: fields.stop_token_ids ?? [],
    ignoreEos: fields.ignore_eos ?? false,
    includeStopString: fields.include_stop_str_in_output ?? false,
    skipSpecialTokens: fields.skip_special_tokens ?? true,
    n: fields.n ?? 1,
    stream: fields.stream ?? false,
    includeUsage,
    continuousUsage,
    requestId: fields.request_id ?? null,
    drafter: fields.speculative === false || fields.draft_tokens === 0 ? 'none' : (fields.drafter ?? null),
    draftTokens: fields.draft_tokens ?? null,
    priority: fields.priority ?? 0,
    cacheSalt: fields.cache_salt ?? null,
    addSpecialTokens: fields.add_special_tokens ?? null,
    truncatePromptTokens: fields.truncate_prompt_tokens ?? null,
    rules: toRuleParams(fields, maxTokens, limits),
    structure: toStructure(fields, limits),
    details: toAnswerDetails(fields, logprobs),
  };
}
