/** `manifest.json` of a recording: what its shards hold and how it was made. */
import { z } from 'zod';

const count = z.number().int().nonnegative();

export const precisionSchema = z.enum(['f32', 'bf16', 'f16']);
export type Precision = z.infer<typeof precisionSchema>;

export const conditionsSchema = z.object({
  target: z.object({ folder: z.string(), sha256: z.string(), weights: z.string() }),
  tokenizerSha256: z.string(),
  /** The Jinja source that prompts were rendered with. */
  chatTemplate: z.string(),
  /** Its variables, beside the messages. */
  chatTemplateKwargs: z.record(z.string(), z.unknown()),
  /** Which user turns were answered. */
  turns: z.enum(['all', 'last']),
  eosTokenIds: z.array(count),
  layers: count,
  hiddenSize: count,
  vocabSize: count,
  /** Ids of the recorded layers: tensor `tap.<id>` each. */
  taps: z.array(z.number().int().min(-1)),
  /** Whether `last_hidden_state` is recorded. */
  lastHiddenState: z.boolean(),
  precision: precisionSchema,
  sampling: z.object({ temperature: z.number(), seed: count, maxTokens: count }),
});

export const shardSchema = z.object({
  file: z.string(),
  sequences: count,
  rows: count,
  /** Of the sequences, in their order. */
  ids: z.array(z.string()),
  /** sha256 of the messages of each one's conversation, as the prompt file has them. */
  prompts: z.array(z.string()),
});

export const manifestSchema = z.object({
  format: z.literal('blockdraft-recording'),
  formatVersion: z.literal(1),
  conventions: z.record(z.string(), z.string()),
  conditions: conditionsSchema,
  /** False while prompts are missing. */
  complete: z.boolean(),
  /** Ids of sequences, in the order in which they came up, whose prompts leave no room for an answer in the context. */
  skipped: z.array(z.string()),
  shards: z.array(shardSchema),
});

export type Conditions = z.infer<typeof conditionsSchema>;
export type Manifest = z.infer<typeof manifestSchema>;

/** For whoever reads the files without this program. */
export const CONVENTIONS: Readonly<Record<string, string>> = {
  tap: 'tap.<i> is the residual stream after decoder layer i, counted from 0: hidden_states[i + 1] of Hugging Face transformers (for the last layer, before the final norm). tap.-1 is the embedding, hidden_states[0].',
  last_hidden_state:
    'output of the last layer behind the final norm, as the head takes it: head(last_hidden_state[row]) are the logits of the token behind that row.',
  rows: 'row r of every tensor belongs to input_ids[r]; every token of a sequence has a row, the last one included.',
  sequence_offsets: 'sequence s has the rows sequence_offsets[s] to sequence_offsets[s + 1] - 1.',
  prompt_lengths:
    'of the rows of sequence s the first prompt_lengths[s] are the prompt; the others are the answer of the target itself.',
};
