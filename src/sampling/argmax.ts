/** The greedy choice. */
import { AppError } from '../core/app-error.ts';
import type { TokenId } from '../core/token.ts';
import { nextAbove } from './next-above.ts';

/**
 * Index of the largest value, the smallest index among equals.
 * @param logits [vocab]
 * @throws AppError `internal` when a value is NaN, or none is above -Infinity: any index would be an invention
 */
export function argmax(logits: Float32Array): TokenId {
  let best = -1;
  let largest = Number.NEGATIVE_INFINITY;
  for (let id = nextAbove(logits, largest, 0); id < logits.length; id = nextAbove(logits, largest, id + 1)) {
    if (Number.isNaN(logits[id])) {
      throw new AppError(
        'internal',
        `expected logits without NaN, got NaN at id ${id} of ${logits.length}; check the weights and their dtype`,
      );
    }
    largest = logits[id]!;
    best = id;
  }
  if (best < 0) {
    throw new AppError('internal', `expected a logit above -Infinity, got none among ${logits.length}; check what masks them`);
  }
  return best;
}
