import type { TokenId } from '../../core/token.ts';
import type { Engine } from '../../engine/engine.ts';

/** How tokens are written in an answer. */
export interface TokenSpeller {
  /** The token's text, special tokens included, or `token_id:<id>` where the request asked for ids. */
  spell(token: TokenId): string;
  /** Its bytes, which need not be whole characters. */
  bytes(token: TokenId): readonly number[];
}

/** @param asIds `return_tokens_as_token_ids`: tells tokens apart whose texts are equal */
export function tokenSpeller(engine: Pick<Engine, 'tokenText' | 'tokenBytes'>, asIds: boolean): TokenSpeller {
  return {
    spell: asIds ? (token) => `token_id:${token}` : (token) => engine.tokenText(token),
    bytes: (token) => [...engine.tokenBytes(token)],
  };
}
