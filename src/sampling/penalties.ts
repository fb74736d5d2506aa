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
 * A copy of the logits with the penalties applied, as in vLLM: repetition first, then
 * `logit -= frequency * count + presence` for tokens of the output.
 * @param logits [vocab]
 * @returns [vocab]
 */
export function penalizedLogits(logits: Float32Array, penalties: Penalties, counts: TokenCounts): Float32Array {
  const penalized = logits.slice();
  if (penalties.repetition !== 1) {
    for (const id of new Set([...counts.prompt, ...counts.output.keys()])) {
      const logit = penalized[id]!;
      penalized[id] = logit > 0 ? logit / penalties.repetition : logit * penalties.repetition;
    }
  }
  for (const [id, count] of counts.output) {
    penalized[id] = penalized[id]! - penalties.frequency * count - penalties.presence;
  }
  return penalized;
}
