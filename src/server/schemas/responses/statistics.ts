/** What an answer says of how it was made; the formulas are in docs/metrics.md. */
import { z } from 'zod';

export const count = z.int().min(0);
export const maybe = z.number().nullable();
const byReason = z.record(z.string(), count);

export const usage = z.strictObject({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.strictObject({ cached_tokens: count }),
  completion_tokens_details: z.strictObject({ reasoning_tokens: count }).optional(),
});

const speculativeDecoding = z.strictObject({
  mean_acceptance_length: maybe,
  draft_acceptance_rate: maybe,
  acceptance_histogram: z.array(count),
  acceptance_histogram_by_draft_length: z.record(z.string(), z.array(count)),
  num_spec_steps: count,
  num_accepted_draft_tokens: count,
  num_draft_tokens: count,
  num_spec_tokens: count,
  per_step_accepted: z.array(count).optional(),
  per_step_drafted: z.array(count).optional(),
  drafter: z.string(),
  no_draft_rounds: byReason,
  shortened_rounds: byReason,
  drafter_error: z.string().nullable(),
});

const metrics = z.strictObject({
  speculative_decoding: speculativeDecoding.nullable().optional(),
  time_to_first_token_ms: maybe,
  queue_time_ms: maybe,
  generation_time_ms: maybe,
  mean_itl_ms: maybe,
  tokens_per_second: maybe,
  seed: z.int(),
});

const timings = z.strictObject({
  cache_n: count,
  prompt_n: count,
  prompt_ms: z.number(),
  prompt_per_token_ms: maybe,
  prompt_per_second: maybe,
  predicted_n: count,
  predicted_ms: z.number(),
  predicted_per_token_ms: maybe,
  predicted_per_second: maybe,
  draft_n: count.optional(),
  draft_n_accepted: count.optional(),
});

const specTokensDetails = z.strictObject({
  spec_verify_ct: count,
  spec_accept_length: maybe,
  spec_accept_rate: maybe,
  spec_num_correct_drafts: count,
  spec_num_proposed_drafts: count,
  spec_correct_drafts_histogram: z.array(count),
});

/** SGLang's, on a choice. */
export const metaInfo = z.strictObject({
  id: z.string(),
  finish_reason: z.union([
    z.strictObject({ type: z.literal('length'), length: count }),
    z.strictObject({ type: z.literal('stop'), matched: z.union([z.string(), count]).nullable() }),
  ]),
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  e2e_latency: z.number(),
  ...specTokensDetails.partial().shape,
  spec_accept_token_num: count.optional(),
  spec_draft_token_num: count.optional(),
  spec_accept_histogram: z.array(count).optional(),
});

const tracedToken = { token: count, text: z.string() };

const tracedRound = z.strictObject({
  choice: count,
  round: count,
  phase: z.enum(['content', 'reasoning', 'tool']),
  position: count,
  anchor: z.strictObject(tracedToken),
  drafted: z.array(
    z.strictObject({
      ...tracedToken,
      confidence: maybe,
      targetProbability: maybe,
      outcome: z.enum(['accepted', 'rejected', 'discarded']),
    }),
  ),
  emitted: z.array(z.strictObject({ ...tracedToken, targetProbability: z.number() })),
  rejectedRank: count.nullable(),
  end: z.enum(['rejected', 'whole', 'answerEnded', 'noDraft']),
  shortBy: z.string().nullable(),
});

/** At the root of a whole answer. */
export const answerStatistics = {
  metrics,
  timings: timings.nullable().optional(),
  trace: z.array(tracedRound).optional(),
  sglext: z.strictObject({ spec_tokens_details: specTokensDetails.nullable() }).optional(),
};
