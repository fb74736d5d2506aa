import type { AppError } from '../../core/app-error.ts';
import { SCALING_KEYS } from '../../model/rope-config.ts';
import type { RawBody } from './body-config.ts';

/** Keys that model libraries write into any config, and that change nothing of what a drafter computes. */
export const IDLE_KEYS: readonly string[] = [
  '_attn_implementation_autoset',
  '_name_or_path',
  'architectures',
  'attention_dropout',
  'auto_map',
  'bos_token_id',
  'chunk_size_feed_forward',
  'dtype',
  'eos_token_id',
  'id2label',
  'initializer_range',
  'is_encoder_decoder',
  'label2id',
  'model_type',
  'output_attentions',
  'output_hidden_states',
  'pad_token_id',
  'pretraining_tp',
  'problem_type',
  'return_dict',
  'tie_word_embeddings',
  'torch_dtype',
  'transformers_version',
  'use_cache',
];

/**
 * A key that is not known may change what the drafter computes: it would run without, and be quietly worse.
 * @param place names the object in messages
 */
export function refuseUnknownKeys(
  object: Readonly<Record<string, unknown>>,
  known: readonly string[],
  place: string,
  refuse: (message: string) => AppError,
): void {
  const unknown = Object.keys(object).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw refuse(
    `expected ${place} without unknown keys, got ${unknown.join(', ')}; what they change is not known here, so allow unclaimed parts only if it is nothing`,
  );
}

/** The same of the objects with rotary settings. */
export function refuseUnknownRopeKeys({ rope_parameters, rope_scaling }: RawBody, refuse: (message: string) => AppError): void {
  refuseUnknownKeys(rope_parameters ?? {}, SCALING_KEYS, 'rope_parameters', refuse);
  refuseUnknownKeys(rope_scaling ?? {}, SCALING_KEYS, 'rope_scaling', refuse);
}
