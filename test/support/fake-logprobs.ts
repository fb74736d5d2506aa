/** What the fake engine says of the probabilities of a place: made up, but of the real shape and order. */
import type { TokenId } from '../../src/core/token.ts';
import type { TokenLogprobs } from '../../src/core/token-logprobs.ts';
import { VOCAB_SIZE } from './fake-text.ts';

/** Logprobs fall by this from rank to rank. */
const STEP = 0.5;

/**
 * The chosen token is the most probable one at even places, and of rank 3 at odd ones.
 * @param count rivals to tell
 */
export function fakeLogprobs(token: TokenId, place: number, count: number): TokenLogprobs {
  const rank = place % 2 === 0 ? 1 : 3;
  const others = Array.from({ length: count + 1 }, (_, i) => (token + 1 + i) % VOCAB_SIZE);
  const ranked = [...others.slice(0, rank - 1), token, ...others.slice(rank - 1)];
  return {
    token,
    logprob: -STEP * rank,
    rank,
    top: ranked.slice(0, count).map((ranked, i) => ({ token: ranked, logprob: -STEP * (i + 1) })),
  };
}
