/** Penalties on tokens that occurred before; a step on the logits ahead of the temperature. */
import type { TokenId } from '../core/token.ts';

export interface Penalties {
  /** Divides positive and multiplies other logits of tokens in the prompt or the output; 1 is none (Keskar et al., "CTRL", 2019). */
  readonly repetition: number;
  /** Subtracted once for every occurrence in the output; 0 is none (OpenAI). */
  readonly frequency: number;
  /** Subtracted once when the token is in the output; 0 is none (OpenAI). */
  readonly presence: number;
}

/** What occurred so far. */
export interface TokenCounts {
  readonly prompt: ReadonlySet<TokenId>;
  /** Occurrences in the output, each at least 1. */
  readonly output: ReadonlyMap<TokenId, number>;
}

/**
 * Applies the penalties in place, as vLLM does: repetition first, then `logit -= frequency * count + presence` for tokens of
 * the output. Takes time by the number of distinct tokens that occurred.
 * @param logits [vocab]
 */
export function penalize(logits: Float32Array, penalties: Penalties, { prompt, output }: TokenCounts): void {
  const { repetition, frequency, presence } = penalties;
  if (repetition !== 1) {
    const penalizeOnce = (id: TokenId) => {
      const logit = logits[id]!;
      logits[id] = logit > 0 ? logit / repetition : logit * repetition;
    };
    for (const id of prompt) penalizeOnce(id);
    for (const id of output.keys()) if (!prompt.has(id)) penalizeOnce(id);
  }
  if (frequency === 0 && presence === 0) return;
  for (const [id, count] of output) logits[id] = logits[id]! - frequency * count - presence;
}
