/** Fields of the OpenAI and vLLM APIs that are accepted while they ask for nothing. */
import { z } from 'zod';
import { isPlainObject } from './bounded.ts';
import type { JsonSchema } from './json-schema.ts';

/** Marks a refusal as "known but not supported", apart from a plain wrong value. */
export const UNSUPPORTED = { unsupported: true } as const;

/**
 * A field that may be absent, null or hold a value that changes nothing. Anything else is refused by name,
 * since an answer that ignored it would be silently wrong.
 */
function neutral(expected: string | null, isNeutral: (value: unknown) => boolean, schema: JsonSchema) {
  return z
    .unknown()
    .refine((value) => value === undefined || value === null || isNeutral(value), { params: UNSUPPORTED })
    .meta(schema)
    .optional()
    .describe(expected === null ? 'absent or null' : `absent, null or ${expected}`);
}

const nothing = () => neutral(null, () => false, { type: 'null' });
const exactly = (...values: readonly unknown[]) =>
  neutral(values.map((value) => JSON.stringify(value)).join(' or '), (value) => values.includes(value), {
    enum: [...values, null],
  });
const emptyList = () =>
  neutral('[]', (value) => Array.isArray(value) && value.length === 0, { type: ['array', 'null'], maxItems: 0 });
/** A note of the caller's that no answer depends on. */
const text = () => neutral('a string', (value) => typeof value === 'string', { type: ['string', 'null'] });

/** Neutral fields of both routes. */
export const NEUTRAL_FIELDS = {
  length_penalty: exactly(1),
  spaces_between_special_tokens: exactly(true),
  use_beam_search: exactly(false),
  stream_interval: exactly(1),
  store: exactly(false),
  service_tier: exactly('auto', 'default'),
  metadata: neutral('an object', isPlainObject, { type: ['object', 'null'] }),
  safety_identifier: text(),
  prompt_cache_key: text(),
  prompt_cache_retention: text(),
  thinking_token_budget: nothing(),
  repetition_detection: nothing(),
} as const;

/** Neutral fields of `stream_options`. */
export const NEUTRAL_STREAM_FIELDS = { include_obfuscation: exactly(false) } as const;

/** Neutral fields of `structured_outputs`. */
export const NEUTRAL_STRUCTURE_FIELDS = {
  disable_any_whitespace: exactly(false),
  disable_additional_properties: exactly(false),
  whitespace_pattern: nothing(),
} as const;

/** Neutral fields of `/v1/completions` alone. */
export const NEUTRAL_COMPLETION_FIELDS = {
  best_of: exactly(1),
  suffix: exactly(''),
} as const;

/** Neutral fields of `/v1/chat/completions` alone. */
export const NEUTRAL_CHAT_FIELDS = {
  functions: emptyList(),
  function_call: exactly('none', 'auto'),
  verbosity: exactly('medium'),
  modalities: neutral('["text"]', (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text', {
    enum: [['text'], null],
  }),
  audio: nothing(),
  prediction: nothing(),
  web_search_options: nothing(),
  echo: exactly(false),
  chat_template: nothing(),
} as const;

/** Neutral fields of one message. */
export const NEUTRAL_MESSAGE_FIELDS = {
  refusal: nothing(),
  audio: nothing(),
  annotations: emptyList(),
  function_call: nothing(),
} as const;
