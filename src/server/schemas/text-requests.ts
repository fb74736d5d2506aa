/** Bodies of the routes between text and tokens; each description completes the sentence "Expected <field> to be …". */
import { z } from 'zod';
import { boundedArray } from './bounded.ts';

const MAX_DETOKENIZED = 262_144;

const flag = () => z.boolean().nullish().describe('true or false');
const model = z.string().nullish().describe('the name of the served model');

/** What a chat's body may have beside its own fields. */
export const RETURN_TOKEN_STRS = z.strictObject({ return_token_strs: flag() });

export const TOKENIZE_TEXT_BODY = z.strictObject({
  model,
  prompt: z.string().describe('a string'),
  add_special_tokens: flag(),
  ...RETURN_TOKEN_STRS.shape,
});

export const DETOKENIZE_BODY = z.strictObject({
  model,
  tokens: boundedArray(z.int().min(0), MAX_DETOKENIZED, 0).describe(`a list of up to ${MAX_DETOKENIZED} token ids`),
});
