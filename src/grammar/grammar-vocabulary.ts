import type { TokenId } from '../core/token.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import type { GrammarVocabulary } from './grammar-messages.ts';

export type GrammarTokenizer = Pick<Tokenizer, 'vocabSize' | 'specialIds' | 'isByteLevel' | 'token'>;

/** Special tokens are no text, and so in no structure; they would be left out of the answer. */
export function grammarVocabulary(
  tokenizer: GrammarTokenizer,
  vocabSize: number,
  stopIds: readonly TokenId[],
  memoryBytes: number,
): GrammarVocabulary {
  const tokens = Array.from({ length: Math.min(tokenizer.vocabSize, vocabSize) }, (_, id) =>
    tokenizer.specialIds.has(id) ? '' : (tokenizer.token(id) ?? ''),
  );
  return { tokens, spelling: tokenizer.isByteLevel ? 'byte_level' : 'byte_fallback', vocabSize, stopIds, memoryBytes };
}
