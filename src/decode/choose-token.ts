import { AppError } from '../core/app-error.ts';
import type { SamplingParams } from '../core/sampling-params.ts';
import type { Position, TokenId } from '../core/token.ts';
import { hasNan } from '../sampling/has-nan.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';
import { sampleToken } from '../sampling/sample-token.ts';
import type { StepResult } from '../target/target.ts';

/**
 * The target's choice behind one row of a step: what plain decoding would emit there.
 * @param position of the token chosen; with the seed it decides the draw
 * @param processor has seen every token before `position`
 * @throws AppError `internal` when the logits hold NaN: whatever were chosen would be an invention; `invalid_request` when the
 *   processor leaves no token, or logits that are not finite
 */
export function chooseToken(
  result: StepResult,
  span: number,
  row: number,
  { sampling, processor }: { readonly sampling: SamplingParams; readonly processor: LogitsProcessor | null },
  position: Position,
): TokenId {
  const logits = result.logits(span, row);
  if (sampling.temperature > 0 && processor === null) return sampleToken(logits, sampling, position);
  // The largest of them says nothing: comparisons with NaN are false.
  if (hasNan(logits)) {
    throw new AppError('internal', `expected logits without NaN, got NaN at position ${position}; check the weights`);
  }
  if (processor === null) return result.greedy(span, row);
  const processed = logits.slice();
  processor.process(processed);
  refuseUnusable(processed, position);
  return sampleToken(processed, sampling, position);
}

function refuseUnusable(processed: Float32Array, position: Position): void {
  let largest = Number.NEGATIVE_INFINITY;
  for (let id = 0; id < processed.length; id++) if (processed[id]! > largest) largest = processed[id]!;
  if (Number.isFinite(largest)) return;
  throw new AppError(
    'invalid_request',
    largest === Number.NEGATIVE_INFINITY
      ? `Expected rules that leave a token, got rules that forbid all of them at position ${position}; allow more`
      : `Expected penalties and biases that leave logits finite, got ${largest} at position ${position}; make them smaller`,
  );
}
