import { tokenLogprobs } from '../sampling/token-logprobs.ts';
import type { StepResult } from '../target/target.ts';
import type { RowPlan } from './plan-rows.ts';

/**
 * Reads from a step's rows what the target says of the prompt's tokens behind them.
 * @param breathe lets others have the event loop: a prompt has many rows
 */
export async function promptLogprobs(
  { sequence, known }: RowPlan,
  span: number,
  result: StepResult,
  breathe: () => Promise<void> | void,
): Promise<void> {
  const start = sequence.cache.length - known;
  for (let row = 0; row < known && start + row + 1 < sequence.promptLength; row++) {
    const token = sequence.tokens[start + row + 1]!;
    sequence.promptLogprobs?.push(tokenLogprobs(result.logits(span, row), token, sequence.promptRivals));
    await breathe();
  }
}
