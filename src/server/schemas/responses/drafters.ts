/** What `/v1/drafters` and the routes below it answer; the words are explained in docs/ab-testing.md. */
import { z } from 'zod';
import { VALIDATION_KINDS } from '../../validation/validation-runner.ts';
import { count, maybe } from './statistics.ts';

const share = z.number().min(0).max(1);
const byReason = z.record(z.string(), count);

const estimate = z
  .strictObject({
    value: z.number(),
    interval_95: z.array(z.number()).length(2).nullable(),
    rounds: count,
    ended_requests: count,
  })
  .nullable();

const acceptance = z.strictObject({
  num_drafts: count,
  num_draft_tokens: count,
  num_accepted_tokens: count,
  mean_acceptance_length: estimate,
  draft_acceptance_rate: maybe,
  per_position: z.array(share),
  per_position_proposed: z.array(share),
  num_accepted_per_position: z.array(count),
  num_proposed_per_position: z.array(count),
  no_draft_rounds: byReason,
  shortened_rounds: byReason,
});

export const swap = z.strictObject({
  drafter: z.string(),
  path: z.string(),
  time: z.string(),
  state: z.enum(['watching', 'kept', 'rolled-back', 'superseded']),
  accepted_tokens_before: estimate,
  accepted_tokens_after: estimate,
  reason: z.string().nullable(),
});

const shadow = z.strictObject({
  failures: count,
  last_failure: z.string().nullable(),
  statistics: acceptance,
  paired: z.array(
    z.strictObject({
      served: z.string(),
      accepted_tokens_difference: estimate,
      per_position: z.array(z.strictObject({ pairs: count, shadow: share, served: share })),
    }),
  ),
});

const drafter = z.strictObject({
  name: z.string(),
  object: z.literal('drafter'),
  kind: z.string(),
  taps: z.array(count),
  block_draft_tokens: count,
  max_draft_tokens: count,
  length_policy: z.enum(['auto', 'fixed', 'none']),
  synthetic: z.boolean(),
  default: z.boolean(),
  weight: share,
  state: z.enum(['on', 'quarantined']),
  off_reason: z.string().nullable(),
  requests: count,
  statistics: acceptance,
  shadow: shadow.nullable(),
  swaps: z.array(swap),
});

export const drafterList = z.strictObject({ object: z.literal('list'), data: z.array(drafter), comparison: z.string() });

export const drafterJob = z.strictObject({
  id: z.string(),
  object: z.literal('drafter.job'),
  kind: z.enum(VALIDATION_KINDS),
  drafters: z.array(z.string()),
  created_at: count,
  finished_at: count.nullable(),
  status: z.enum(['running', 'succeeded', 'failed', 'cancelled']),
  progress: z.strictObject({ stage: z.string(), done: count, total: count }).nullable(),
  exit_code: count.nullable(),
  error: z.strictObject({ message: z.string() }).nullable(),
  result: z.unknown().meta({ description: 'What the command prints with --json; null until it has succeeded, and in lists.' }),
});

export const drafterJobList = z.strictObject({ object: z.literal('list'), data: z.array(drafterJob) });
