/** Which rows of the embedding a trainer may have taken for the mask. */
import type { TokenId } from '../../core/token.ts';
import type { Tokenizer } from '../../text/tokenizer.ts';

const MOST = 16;

/**
 * @param vocab rows of the embedding
 * @returns tokens named as masks, rows that no token uses, other special tokens, and neighbours; without the declared one
 */
export function maskCandidates(tokenizer: Tokenizer, vocab: number, declared: TokenId): readonly TokenId[] {
  const special = [...tokenizer.specialIds].sort((a, b) => a - b);
  const named = special.filter((id) => /mask/i.test(tokenizer.token(id) ?? ''));
  const unused = tokenizer.vocabSize < vocab ? [tokenizer.vocabSize, vocab - 1] : [];
  const wellKnown = [tokenizer.eosId, tokenizer.bosId].filter((id) => id !== null);
  const neighbours = [0, declared - 1, declared + 1, vocab - 1];
  const all = [...named, ...unused, ...wellKnown, ...special, ...neighbours];
  return [...new Set(all)].filter((id) => id !== declared && id >= 0 && id < vocab).slice(0, MOST);
}
