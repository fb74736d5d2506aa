/** The part of @huggingface/tokenizers that is used, typed. */
import { Tokenizer } from '@huggingface/tokenizers';
import type { TokenId } from '../core/token.ts';
import type { JsonObject } from './tokenizer-files.ts';

export interface HuggingFaceTokenizer {
  encode(text: string, options: { readonly add_special_tokens: boolean }): { readonly ids: TokenId[] };
  /** @param ids at least one */
  decode(ids: readonly TokenId[], options: { readonly clean_up_tokenization_spaces: boolean }): string;
  token_to_id(token: string): TokenId | undefined;
  id_to_token(id: TokenId): string | undefined;
  get_added_tokens_decoder(): ReadonlyMap<TokenId, { readonly special: boolean }>;
  get_vocab(withAddedTokens: boolean): ReadonlyMap<string, TokenId>;
}

/**
 * The package's own declarations import each other without file extensions, which NodeNext resolves to `any`: hence the
 * interface above.
 * @param definition the object in tokenizer.json
 * @param config the object in tokenizer_config.json
 */
export function createHuggingFaceTokenizer(definition: JsonObject, config: JsonObject): HuggingFaceTokenizer {
  return new Tokenizer(definition, config);
}
