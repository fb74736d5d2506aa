import { AppError } from '../core/app-error.ts';
import type { SamplingParams } from '../core/sampling-params.ts';
import type { Position, TokenId } from '../core/token.ts';
import { hasNan } from '../sampling/has-nan.ts';
import { sampleToken } from '../sampling/sample-token.ts';
import type { StepResult } from '../target/target.ts';

/**
 * The target's choice behind one row of a step: what plain decoding would emit there.
 * @param position of the token chosen; with the seed it decides the draw
 * @throws AppError `internal` when the logits hold NaN: whatever were chosen would be an invention
 */
export function chooseToken(
  result: StepResult,
  span: number,
  row: number,
  sampling: SamplingParams,
  position: Position,
): TokenId {
  if (sampling.temperature === 0) {
    // The largest of them says nothing: comparisons with NaN are false.
    if (hasNan(result.logits(span, row))) {
      throw new AppError('internal', `expected logits without NaN, got NaN at position ${position}; check the weights`);
    }
    return result.greedy(span, row);
  }
  return sampleToken(result.logits(span, row), sampling, position);
}
