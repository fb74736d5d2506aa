/** One round of speculative decoding over several sequences: propose, verify, accept, commit. */
import { AbortedError } from '../core/aborted-error.ts';
import type { NoDraftReason, RoundRecord } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { Drafter, DraftRequest, Proposal } from '../drafter/drafter.ts';
import type { StepResult, Target } from '../target/target.ts';
import { accept } from './accept.ts';
import { checkProposals } from './check-proposals.ts';
import { chooseToken } from './choose-token.ts';
import { planRows, type RowPlan } from './plan-rows.ts';
import type { Sequence } from './sequence.ts';

/** What a round did to one sequence. */
export interface SequenceOutcome {
  readonly sequence: Sequence;
  /** Rows of the prompt that were computed. */
  readonly promptRows: number;
  readonly emitted: readonly TokenId[];
  /** Null while the prompt is being computed: its last rows choose the first token, and nothing is verified. */
  readonly round: RoundRecord | null;
  readonly noDraft: NoDraftReason | null;
}

export interface RoundOutcome {
  readonly sequences: readonly SequenceOutcome[];
  readonly draftMs: number;
  readonly verifyMs: number;
}

/**
 * Moves every sequence on that the step has room for. When the step fails or is aborted, no sequence has changed but
 * for drafters that were dropped.
 * @param sequences none of which has ended
 * @throws AbortedError when the signal ended it; whatever the target throws
 */
export async function decodeRound(target: Target, sequences: readonly Sequence[], signal: AbortSignal): Promise<RoundOutcome> {
  const started = performance.now();
  const plans = planRows(sequences, target.maxRows);
  const drafts = await propose(sequences, plans, target.facts.vocabSize, signal);
  const drafted = performance.now();

  const spans = plans.map(({ sequence, known, complete }) => {
    const { tokens, cache } = sequence;
    const knownTokens = tokens.slice(cache.length, cache.length + known);
    const draft = drafts.get(sequence)?.tokens ?? [];
    return { cache, tokens: [...knownTokens, ...draft], logitsFrom: complete ? known - 1 : known };
  });
  const result = await target.step(spans, signal);

  const outcomes = plans.map((plan, span) => commit(plan, span, drafts.get(plan.sequence)?.tokens ?? [], result));
  return { sequences: outcomes, draftMs: drafted - started, verifyMs: performance.now() - drafted };
}

/** Asks each drafter once, for all its sequences; one that fails is dropped by them, and they go on without. */
async function propose(
  sequences: readonly Sequence[],
  plans: readonly RowPlan[],
  vocabSize: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<Sequence, Proposal>> {
  const budgets = new Map(plans.map((plan) => [plan.sequence, plan.budget]));
  const byDrafter = new Map<Drafter, Sequence[]>();
  for (const sequence of sequences) {
    if (sequence.drafting === null) continue;
    const { drafter } = sequence.drafting;
    byDrafter.set(drafter, [...(byDrafter.get(drafter) ?? []), sequence]);
  }
  const proposals = new Map<Sequence, Proposal>();
  for (const [drafter, members] of byDrafter) {
    const requests = members.flatMap((sequence): DraftRequest[] =>
      sequence.drafting === null
        ? []
        : [{ state: sequence.drafting.state, anchor: sequence.tokens.at(-1) as TokenId, budget: budgets.get(sequence) ?? 0 }],
    );
    try {
      const answers = await drafter.propose(requests, signal);
      checkProposals(drafter, requests, answers, vocabSize);
      for (const [i, sequence] of members.entries()) proposals.set(sequence, answers[i] as Proposal);
    } catch (error) {
      if (signal.aborted) throw new AbortedError('A round', error);
      for (const sequence of members) sequence.dropDrafter(error);
    }
  }
  return proposals;
}

function commit(plan: RowPlan, span: number, draft: readonly TokenId[], result: StepResult): SequenceOutcome {
  const { sequence, known, complete } = plan;
  const { cache, sampling } = sequence;
  const start = cache.length - known - draft.length;
  const answered = sequence.emitted > 0;
  const before = sequence.tokens.length;
  let round: RoundRecord | null = null;
  let noDraft: NoDraftReason | null = null;
  if (complete) {
    const choose = (index: number) => chooseToken(result, span, known - 1 + index, sampling, before + index);
    const acceptance = accept(draft, choose, (token) => sequence.emit(token));
    cache.truncate(start + known + acceptance.accepted);
    if (answered) {
      round = { drafted: draft.length, ...acceptance };
      noDraft = draft.length > 0 ? null : sequence.drafting === null ? sequence.draftBudget().reason : plan.reason;
      sequence.record(round, noDraft);
    }
  }
  try {
    sequence.drafting?.state.observe({
      position: start,
      tokens: sequence.tokens.slice(start, cache.length),
      taps: result.taps,
      firstRow: result.firstRow(span),
    });
  } catch (error) {
    sequence.dropDrafter(error);
  }
  return { sequence, promptRows: answered ? 0 : known, emitted: sequence.tokens.slice(before), round, noDraft };
}
