/** What the routes between text and tokens answer. */
import { z } from 'zod';
import { count } from './statistics.ts';

export const tokenized = z.strictObject({
  count,
  max_model_len: count,
  tokens: z.array(count),
  token_strs: z.array(z.string().nullable()).nullable(),
});

export const detokenized = z.strictObject({ prompt: z.string() });

export const renderedPrompts = z.strictObject({
  object: z.literal('list'),
  model: z.string(),
  max_model_len: count,
  data: z.array(
    z.strictObject({
      object: z.literal('prompt'),
      text: z.string().nullable().meta({ description: 'Null for token ids, and for a prompt that was cut.' }),
      token_ids: z.array(count),
      count,
    }),
  ),
});
