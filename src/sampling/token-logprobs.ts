import type { TokenId } from '../core/token.ts';
import type { TokenLogprobs } from '../core/token-logprobs.ts';
import { largestIndices, logPartition, rankOf } from './row-measures.ts';

/**
 * What a row says of a token and of its rivals.
 * @param logits [vocab] as the target made them
 * @param top how many of the most probable tokens to tell
 */
export function tokenLogprobs(logits: Float32Array, token: TokenId, top: number): TokenLogprobs {
  const partition = logPartition(logits);
  const logprob = (id: TokenId): number => logits[id]! - partition;
  return {
    token,
    logprob: logprob(token),
    rank: rankOf(logits, token) + 1,
    top: top === 0 ? [] : largestIndices(logits, top).map((id) => ({ token: id, logprob: logprob(id) })),
  };
}
