/** What a server says of itself and of its model. */
import { z } from 'zod';
import { count, maybe } from './statistics.ts';

export const status = z.strictObject({ status: z.literal('ok') });
export const version = z.strictObject({ version: z.string() });

export const model = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: count,
  owned_by: z.string(),
  max_model_len: count,
});
export const modelList = z.strictObject({ object: z.literal('list'), data: z.array(model) });

export const serverInfo = z.strictObject({
  version: z.string(),
  served_model_name: z.string(),
  context_length: count,
  max_running_requests: count,
  speculative_algorithm: z.string().nullable(),
  speculative_num_draft_tokens: count.nullable(),
  arguments: z.record(z.string(), z.unknown()),
  internal_states: z.array(z.strictObject({ avg_spec_accept_length: maybe, num_running_reqs: count, num_queue_reqs: count })),
});
