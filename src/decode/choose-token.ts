import type { SamplingParams } from '../core/sampling-params.ts';
import type { Position, TokenId } from '../core/token.ts';
import { sampleToken } from '../sampling/sample-token.ts';
import type { StepResult } from '../target/target.ts';

/**
 * The target's choice behind one row of a step: what plain decoding would emit there.
 * @param position of the token chosen; with the seed it decides the draw
 */
export function chooseToken(
  result: StepResult,
  span: number,
  row: number,
  sampling: SamplingParams,
  position: Position,
): TokenId {
  if (sampling.temperature === 0) return result.greedy(span, row);
  return sampleToken(result.logits(span, row), sampling, position);
}
