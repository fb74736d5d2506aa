import type { TokenId } from '../../core/token.ts';
import type { ModelText } from '../../engine/engine.ts';

/** How tokens are written in an answer. */
export interface TokenSpeller {
  /** The token's text, special tokens included, or `token_id:<id>` where the request asked for ids. */
  spell(token: TokenId): string;
  /** Its bytes, which need not be whole characters. */
  bytes(token: TokenId): readonly number[];
}

/** @param asIds `return_tokens_as_token_ids`: tells tokens apart whose texts are equal */
export function tokenSpeller(text: Pick<ModelText, 'tokenText' | 'tokenBytes'>, asIds: boolean): TokenSpeller {
  return {
    spell: asIds ? (token) => `token_id:${token}` : (token) => text.tokenText(token),
    bytes: (token) => [...text.tokenBytes(token)],
  };
}
