/** Token ids, one at a time, to text that will not change any more. */
import type { TokenId } from '../core/token.ts';
import { ByteLevelDetokenizer } from './byte-level-detokenizer.ts';
import type { Tokenizer } from './tokenizer.ts';
import { WindowedDetokenizer } from './windowed-detokenizer.ts';

/** One answer. The joined results of all `push` calls and of `flush` are the text of all ids. */
export interface IncrementalDetokenizer {
  /** @returns text that became certain: whole characters, empty while the text so far ends in U+FFFD, which more bytes may turn into a character */
  push(id: TokenId): string;
  /** @returns what was held back, with U+FFFD for bytes that are no character. Call once, at the end. */
  flush(): string;
}

export interface DetokenizerOptions {
  readonly skipSpecialTokens: boolean;
  /** Special tokens that are shown all the same. Default: none. */
  readonly shownTokens?: readonly TokenId[];
  /**
   * The prompt, or its end. A decoder that treats the beginning of a text differently, as sentencepiece does with a space, then
   * sees that the answer is not one. Byte-level decoders do not need it.
   */
  readonly precedingTokens?: readonly TokenId[];
}

export function createDetokenizer(tokenizer: Tokenizer, options: DetokenizerOptions): IncrementalDetokenizer {
  const skipped = skippedTokens(tokenizer, options);
  if (tokenizer.isByteLevel) return new ByteLevelDetokenizer(tokenizer, skipped);
  return new WindowedDetokenizer(tokenizer, skipped, options.precedingTokens ?? []);
}

function skippedTokens(
  { specialIds }: Tokenizer,
  { skipSpecialTokens, shownTokens = [] }: DetokenizerOptions,
): ReadonlySet<TokenId> {
  if (!skipSpecialTokens) return new Set();
  return shownTokens.length === 0 ? specialIds : new Set([...specialIds].filter((id) => !shownTokens.includes(id)));
}
