import { commonLength } from '../core/common-length.ts';
import type { TokenId } from '../core/token.ts';
import { canBeginLike } from '../decode/begin-like.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { PrefixSource } from './prefix-cache.ts';

/** A prompt that is being computed, and who may begin with it. */
export interface PromptUnderWay extends PrefixSource {
  readonly promptLength: number;
}

export interface PromptWaiting {
  readonly tokens: readonly TokenId[];
  readonly salt: string | null;
  /** Null when there will be no drafts. */
  readonly drafter: Drafter | null;
}

/** Fewer tokens are computed again as fast as they are waited for. */
const LEAST_SHARED = 64;

/**
 * Whether a prompt that has not begun shares so much with one that is being computed that it had better wait for it, and
 * take over what they have in common: several answers to one prompt arrive together, and so do many with one system prompt.
 * @param block only multiples of it can be shared
 */
export function sharesBeginning(
  { tokens, salt, drafter }: PromptWaiting,
  underWay: readonly PromptUnderWay[],
  block = 1,
): boolean {
  return underWay.some((other) => {
    if (other.salt !== salt || other.cache.length >= other.promptLength) return false;
    if (drafter !== null && !canBeginLike(drafter, other)) return false;
    // The last token is computed in any case, for its logits.
    const common = commonLength(tokens, other.tokens, Math.min(tokens.length - 1, other.promptLength));
    const shared = common - (common % block);
    return shared >= LEAST_SHARED && other.cache.length < shared;
  });
}
