import type { NoDraftReason } from '../core/speculation-record.ts';
import type { Sequence } from './sequence.ts';

/** One sequence's part in a round. */
export interface RowPlan {
  readonly sequence: Sequence;
  /** Tokens that are known and will be computed. */
  readonly known: number;
  /** Whether that is all of them, so that the target chooses what follows. */
  readonly complete: boolean;
  /** Rows for draft tokens behind them. */
  readonly budget: number;
  /** Why the budget is 0, or why there may be no draft. */
  readonly reason: NoDraftReason;
}

/**
 * Shares the rows of one step: sequences that are past their prompt come first, so that a long prompt delays them by one
 * step at most; prompts get what is left, in order of arrival.
 */
export function planRows(sequences: readonly Sequence[], maxRows: number): RowPlan[] {
  const inPrompt = (sequence: Sequence) => sequence.emitted === 0;
  const ordered = [...sequences.filter((s) => !inPrompt(s)), ...sequences.filter(inPrompt)];
  let left = maxRows;
  const plans: RowPlan[] = [];
  for (const [index, sequence] of ordered.entries()) {
    // Every decoding sequence behind this one still needs a row of its own.
    const reserved = ordered.slice(index + 1).filter((s) => !inPrompt(s)).length;
    const known = Math.min(sequence.uncached, left - reserved);
    if (known <= 0) continue;
    const complete = known === sequence.uncached;
    // A draft needs the drafter to have seen all but the last token, which a prompt's own rows are still to provide.
    const { budget, reason } = inPrompt(sequence) ? { budget: 0, reason: 'no-proposal' as const } : sequence.draftBudget();
    const rows = Math.min(budget, left - reserved - known);
    plans.push({ sequence, known, complete, budget: rows, reason });
    left -= known + rows;
  }
  return plans;
}
