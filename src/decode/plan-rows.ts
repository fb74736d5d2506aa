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

/** Rows of a step whose logits are kept to tell of prompts: they take memory by the size of the vocabulary. */
const MAX_TOLD_ROWS = 64;

/**
 * Shares the rows of one step. Every sequence past its prompt gets the one it needs; what is left goes to drafts and
 * prompts in equal shares, all prompts together counting as one draft. So drafts do not keep a prompt waiting.
 * @param sequences in the order in which prompts are served
 * @param maxPromptRows for prompts while other sequences decode, which wait for the step; without them there is no bound
 * @param promptBlock no step goes past a multiple of it within a prompt
 */
export function planRows(
  sequences: readonly Sequence[],
  maxRows: number,
  maxPromptRows = maxRows,
  promptBlock = Number.POSITIVE_INFINITY,
): RowPlan[] {
  const decoding = sequences.filter(({ emitted }) => emitted > 0).slice(0, maxRows);
  const prompts = sequences.filter(({ emitted }) => emitted === 0);
  const drafts = decoding.map((sequence) => sequence.draftBudget());
  const waiting = wantedRows(prompts, promptBlock);
  const bound = decoding.length === 0 ? maxRows : Math.max(maxPromptRows, 1);
  const promptRows = Math.min(
    waiting.reduce((sum, rows) => sum + rows, 0),
    bound,
  );
  const spare = maxRows - decoding.length;
  // However many the drafts are, a prompt comes to its end.
  const kept = Math.min(spare, promptRows, 1);
  const shares = equalShares([...drafts.map(({ budget }) => budget), promptRows - kept], spare - kept);

  const plans = decoding.map((sequence, i): RowPlan => {
    const { budget, reason } = drafts[i]!;
    const share = shares[i]!;
    return { sequence, known: sequence.uncached, complete: true, budget: share, reason: share < budget ? 'load' : reason };
  });
  for (const [i, known] of sharesInOrder(waiting, kept + shares[decoding.length]!).entries()) {
    if (known === 0) continue;
    const sequence = prompts[i]!;
    // No draft yet: the drafter has to see the prompt's own rows first.
    plans.push({ sequence, known, complete: known === sequence.uncached, budget: 0, reason: null });
  }
  return plans;
}

/** All rows of each prompt, or of its block; of those that are told of, no more than a step keeps the logits of. */
function wantedRows(prompts: readonly Sequence[], block: number): number[] {
  let told = MAX_TOLD_ROWS;
  return prompts.map(({ cache, uncached, wantsPromptLogprobs }) => {
    const inBlock = block === Number.POSITIVE_INFINITY ? uncached : Math.min(uncached, block - (cache.length % block));
    if (!wantsPromptLogprobs) return inBlock;
    const rows = Math.min(inBlock, told);
    told -= rows;
    return rows;
  });
}

/**
 * What each gets of a total, earlier ones first: all that it wants when that is there, else half of what is there, so that
 * a short prompt need not wait for the end of a long one. What nobody behind wants goes to the earliest.
 */
function sharesInOrder(wanted: readonly number[], total: number): number[] {
  let left = total;
  const take = (share: number) => {
    left -= share;
    return share;
  };
  const shares = wanted.map((rows) => take(rows <= left ? rows : Math.ceil(left / 2)));
  return shares.map((share, i) => share + take(Math.min(wanted[i]! - share, left)));
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
