import type { ShortDraftReason } from '../core/speculation-record.ts';
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
  /** Why the budget is less than the sequence's limit; null when it is not. */
  readonly reason: ShortDraftReason | null;
}

/**
 * Shares the rows of one step. Every sequence past its prompt gets the one it needs; what is left goes to drafts and
 * prompts in equal shares, all prompts together counting as one draft. So a long prompt delays nobody by more than a
 * step, and drafts do not keep a prompt waiting. Prompts use their share in order of arrival.
 */
export function planRows(sequences: readonly Sequence[], maxRows: number): RowPlan[] {
  const decoding = sequences.filter(({ emitted }) => emitted > 0).slice(0, maxRows);
  const prompts = sequences.filter(({ emitted }) => emitted === 0);
  const drafts = decoding.map((sequence) => sequence.draftBudget());
  const promptRows = prompts.reduce((sum, { uncached }) => sum + uncached, 0);
  const spare = maxRows - decoding.length;
  // However many the drafts are, a prompt comes to its end.
  const kept = Math.min(spare, promptRows, 1);
  const shares = equalShares([...drafts.map(({ budget }) => budget), promptRows - kept], spare - kept);

  const plans = decoding.map((sequence, i): RowPlan => {
    const { budget, reason } = drafts[i]!;
    const share = shares[i]!;
    return { sequence, known: sequence.uncached, complete: true, budget: share, reason: share < budget ? 'load' : reason };
  });
  let left = kept + shares[decoding.length]!;
  for (const sequence of prompts) {
    const known = Math.min(sequence.uncached, left);
    if (known === 0) break;
    // No draft yet: the drafter has to see the prompt's own rows first.
    plans.push({ sequence, known, complete: known === sequence.uncached, budget: 0, reason: null });
    left -= known;
  }
  return plans;
}

/** What each gets of a total; who wants less than an equal share leaves the rest to the others. */
function equalShares(wanted: readonly number[], total: number): number[] {
  const shares = new Array<number>(wanted.length).fill(0);
  let left = total;
  const modestFirst = [...wanted.keys()].sort((a, b) => wanted[a]! - wanted[b]!);
  for (const [place, index] of modestFirst.entries()) {
    const share = Math.floor(left / (wanted.length - place));
    shares[index] = Math.min(wanted[index]!, share);
    left -= shares[index];
  }
  return shares;
}
