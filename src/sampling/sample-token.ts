/** The one draw of the next token that plain and speculative decoding share. */
import type { SamplingParams } from '../core/sampling-params.ts';
import type { Position, TokenId } from '../core/token.ts';
import { argmax } from './argmax.ts';
import { CounterRng } from './counter-rng.ts';
import { inverseCdf } from './inverse-cdf.ts';
import { candidates, processedDistribution } from './processed-distribution.ts';
import { quickDraw } from './quick-draw.ts';

/**
 * The token at a position: the largest logit when the temperature is 0, else a draw by inverse cumulative distribution
 * with the random number of (seed, position).
 *
 * Coupled sampling: the result depends on nothing but (seed, position, logits). A round that accepts a draft token exactly
 * while it equals this draw, and emits the draw itself where it does not, therefore emits the same tokens as plain decoding,
 * whatever was drafted. The draw is independent of the draft, which is made from earlier tokens, so a draft token x is
 * accepted with the target's own probability of x. For a drafter that proposes one definite token that is the acceptance
 * probability of the rejection rule of Leviathan et al., "Fast Inference from Transformers via Speculative Decoding",
 * ICML 2023, too.
 * @param logits [vocab] the target's row that predicts `position`
 * @param position of the token that is drawn
 * @throws AppError `internal` when the logits have NaN or nothing above -Infinity, or the temperature is above 0 and they have +Infinity
 */
export function sampleToken(logits: Float32Array, params: SamplingParams, position: Position): TokenId {
  if (params.temperature === 0) return argmax(logits);
  const uniform = new CounterRng(params.seed).uniform(position);
  const drawn = quickDraw(candidates(logits, params), params, uniform);
  if (drawn !== null) return drawn;
  const { ids, probabilities } = processedDistribution(logits, params);
  return ids[inverseCdf(probabilities, uniform)]!;
}
