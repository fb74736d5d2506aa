import { AbortedError } from '../core/aborted-error.ts';
import type { ShortDraftReason } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { Drafter, DraftRequest, Proposal } from '../drafter/drafter.ts';
import { checkProposals } from './check-proposals.ts';
import type { StepContext } from './draft-length/length-policy.ts';
import type { RowPlan } from './plan-rows.ts';
import type { Drafting, Sequence } from './sequence.ts';

/** What is to be verified for one sequence. */
export interface Draft {
  readonly tokens: readonly TokenId[];
  /** Everything that was proposed; `tokens` are its beginning. */
  readonly proposal: Proposal;
  /** Why there are fewer tokens than the sequence may have; null when there are not. */
  readonly shortBy: ShortDraftReason | null;
}

/** A sequence and its drafter, as they are at the beginning of a round. */
interface Member {
  readonly sequence: Sequence;
  readonly drafting: Drafting;
  readonly budget: number;
  readonly reason: ShortDraftReason | null;
}

/**
 * Asks each drafter once, for all its sequences; one that fails is dropped by them, and they go on without.
 * @throws AbortedError when the signal ended it
 */
export async function propose(
  sequences: readonly Sequence[],
  plans: readonly RowPlan[],
  vocabSize: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<Sequence, Draft>> {
  const planOf = new Map(plans.map((plan) => [plan.sequence, plan]));
  const byDrafter = new Map<Drafter, Member[]>();
  for (const sequence of sequences) {
    const { drafting } = sequence;
    if (drafting === null) continue;
    // A sequence without rows in this step is asked for nothing, but still takes in what it observed.
    const { budget, reason } = planOf.get(sequence) ?? { budget: 0, reason: null };
    byDrafter.set(drafting.drafter, [...(byDrafter.get(drafting.drafter) ?? []), { sequence, drafting, budget, reason }]);
  }
  const step: StepContext = {
    decoding: plans.filter(({ sequence }) => sequence.emitted > 0).length,
    promptRows: plans.reduce((sum, { sequence, known }) => sum + (sequence.emitted > 0 ? 0 : known), 0),
  };
  const drafts = new Map<Sequence, Draft>();
  for (const [drafter, members] of byDrafter) {
    try {
      for (const [sequence, draft] of await proposeWith(drafter, members, step, vocabSize, signal)) drafts.set(sequence, draft);
    } catch (error) {
      if (signal.aborted) throw new AbortedError('A round', error);
      for (const { sequence } of members) sequence.dropDrafter(error);
    }
  }
  return drafts;
}

async function proposeWith(
  drafter: Drafter,
  members: readonly Member[],
  step: StepContext,
  vocabSize: number,
  signal: AbortSignal,
): Promise<(readonly [Sequence, Draft])[]> {
  const { lengths } = (members[0] as Member).drafting;
  const asked = lengths.ask(members, step);
  const requests = members.map(({ sequence, drafting }, i): DraftRequest => {
    return { state: drafting.state, anchor: sequence.tokens.at(-1) as TokenId, budget: asked[i]!.tokens };
  });
  const started = performance.now();
  const proposals = await drafter.propose(requests, signal);
  const draftMs = performance.now() - started;
  checkProposals(drafter, requests, proposals, vocabSize);

  const decoding = members.flatMap((member, i) =>
    member.sequence.emitted > 0 ? [{ ...member, proposal: proposals[i]!, asked: asked[i]! }] : [],
  );
  const kept = lengths.trim(decoding, step, draftMs);
  return decoding.map(({ sequence, proposal, budget, reason, asked: { tokens: wanted, reason: wantedReason } }, i) => {
    const { tokens: length, reason: keptReason } = kept[i]!;
    // The last cut is the one that counts; without one, whatever kept the budget below the limit.
    let shortBy = reason;
    if (wanted < budget) shortBy = wantedReason;
    if (proposal.tokens.length < wanted) shortBy = 'no-proposal';
    if (length < proposal.tokens.length) shortBy = keptReason;
    return [sequence, { tokens: proposal.tokens.slice(0, length), proposal, shortBy }] as const;
  });
}
