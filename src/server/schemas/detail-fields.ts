/** Request fields that ask an answer to tell more than its text. */
import { z } from 'zod';
import type { SpecMetricsLevel } from '../server-config.ts';
import { fieldError } from './parse-request.ts';

/** OpenAI's limit for chats, and vLLM's for everything. */
export const MAX_LOGPROBS = 20;

const flag = () => z.boolean().nullish().describe('true or false');

/** A number of most probable tokens to tell of each place. */
export const logprobCount = () =>
  z.int().min(0).max(MAX_LOGPROBS).nullish().describe(`a whole number from 0 to ${MAX_LOGPROBS}`);

/** `logprobs` and `top_logprobs` as chats have them. */
export const CHAT_LOGPROB_FIELDS = { logprobs: flag(), top_logprobs: logprobCount() } as const;

/** Schemas by field name; each description completes the sentence "Expected <field> to be …". */
export const DETAIL_FIELDS = {
  prompt_logprobs: logprobCount(),
  return_token_ids: flag(),
  return_tokens_as_token_ids: flag(),
  trace: flag(),
  spec_decode_metrics: z.enum(['none', 'summary', 'detailed']).nullish().describe('"none", "summary" or "detailed"'),
  return_meta_info: flag(),
  return_spec_tokens_details: flag(),
  timings_per_token: flag(),
} as const;

type DetailFields = z.infer<z.ZodObject<typeof DETAIL_FIELDS>>;

/** What an answer tells beside its text. */
export interface AnswerDetails {
  /** How many rivals to tell of each token; null: no logprobs. */
  readonly logprobs: number | null;
  /** The same for the prompt's tokens. */
  readonly promptLogprobs: number | null;
  readonly tokenIds: boolean;
  /** Tokens are written as `token_id:<id>`. */
  readonly tokensAsIds: boolean;
  /** What happened in each round. */
  readonly trace: boolean;
  /** Null: as the server is configured. */
  readonly specMetrics: SpecMetricsLevel | null;
  /** SGLang's `meta_info` of each choice. */
  readonly metaInfo: boolean;
  /** SGLang's `sglext.spec_tokens_details`. */
  readonly specTokensDetails: boolean;
  /** llama.cpp's `timings`, of a stream in its last chunk. */
  readonly timings: boolean;
}

/** @param logprobs see {@link AnswerDetails.logprobs} */
export function toAnswerDetails(fields: DetailFields, logprobs: number | null): AnswerDetails {
  return {
    logprobs,
    promptLogprobs: fields.prompt_logprobs ?? null,
    tokenIds: fields.return_token_ids ?? false,
    tokensAsIds: fields.return_tokens_as_token_ids ?? false,
    trace: fields.trace ?? false,
    specMetrics: fields.spec_decode_metrics ?? null,
    metaInfo: fields.return_meta_info ?? false,
    specTokensDetails: fields.return_spec_tokens_details ?? false,
    timings: fields.timings_per_token ?? false,
  };
}

/**
 * How many rivals a chat request wants to be told of each token; null: no logprobs.
 * @throws AppError `invalid_request` for `top_logprobs` without `logprobs`
 */
export function chatLogprobCount(fields: z.infer<z.ZodObject<typeof CHAT_LOGPROB_FIELDS>>): number | null {
  const { logprobs, top_logprobs: top } = fields;
  if (logprobs) return top ?? 0;
  if (top) throw fieldError('top_logprobs', 'absent or 0 unless logprobs is true', top);
  return null;
}
