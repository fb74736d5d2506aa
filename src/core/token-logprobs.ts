import type { TokenId } from './token.ts';

/**
 * Natural logarithms of the target's own probabilities of one place: softmax of its logits at temperature 1, before
 * penalties, masks and cuts (vLLM's `raw_logprobs`).
 */
export interface TokenLogprobs {
  readonly token: TokenId;
  readonly logprob: number;
  /** 1 for the largest logit. */
  readonly rank: number;
  /** The most probable tokens, as many as were asked for, most probable first. */
  readonly top: readonly { readonly token: TokenId; readonly logprob: number }[];
}
