import { AbortedError } from '../core/aborted-error.ts';
import type { ShortDraftReason } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { Drafter, DraftRequest, DraftState, Proposal } from '../drafter/drafter.ts';
import { checkProposals } from './check-proposals.ts';
import type { StepContext } from './draft-length/length-policy.ts';
import type { RowPlan } from './plan-rows.ts';
import type { Drafting, Sequence } from './sequence.ts';
import type { ShadowDraft } from './shadow-draft.ts';

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

/** A sequence and a drafter in the shadow of its own. */
interface ShadowMember {
  readonly sequence: Sequence;
  readonly shadow: ShadowDraft;
  readonly budget: number;
}

/** All that a drafter is asked in a round: it serves one call between two steps. */
interface Call {
  readonly members: Member[];
  readonly shadows: ShadowMember[];
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
  const calls = new Map<Drafter, Call>();
  const callOf = (drafter: Drafter): Call => {
    const call = calls.get(drafter) ?? { members: [], shadows: [] };
    calls.set(drafter, call);
    return call;
  };
  for (const sequence of sequences) {
    const { drafting } = sequence;
    const plan = planOf.get(sequence);
    // A sequence without rows in this step is asked for nothing, but still takes in what it observed.
    const { budget, reason } = plan ?? { budget: 0, reason: null };
    if (drafting !== null) callOf(drafting.drafter).members.push({ sequence, drafting, budget, reason });
    const drafts = plan !== undefined && sequence.emitted > 0;
    for (const shadow of sequence.shadows) {
      const room = drafts ? Math.min(shadow.limit, sequence.draftRoom) : 0;
      callOf(shadow.drafter).shadows.push({ sequence, shadow, budget: room });
    }
  }
  const step: StepContext = {
    decoding: plans.filter(({ sequence }) => sequence.emitted > 0).length,
  };
  const drafts = new Map<Sequence, Draft>();
  for (const [drafter, call] of calls) {
    try {
      for (const [sequence, draft] of await proposeWith(drafter, call, step, vocabSize, signal)) drafts.set(sequence, draft);
    } catch (error) {
      if (signal.aborted) throw new AbortedError('A round', error);
      for (const { sequence } of call.members) sequence.dropDrafter(error);
      for (const { sequence, shadow } of call.shadows) sequence.dropShadow(shadow, error);
    }
  }
  return drafts;
}

async function proposeWith(
  drafter: Drafter,
  { members, shadows }: Call,
  step: StepContext,
  vocabSize: number,
  signal: AbortSignal,
): Promise<(readonly [Sequence, Draft])[]> {
  const lengths = members[0]?.drafting.lengths;
  const candidates = members.map(({ sequence, drafting, budget }) => {
    return { sequence, budget, waiting: drafting.state.waitingRows ?? 0 };
  });
  const asked = lengths?.ask(candidates, step) ?? [];
  const request = (sequence: Sequence, state: DraftState, budget: number): DraftRequest => {
    return { state, anchor: sequence.tokens.at(-1) as TokenId, budget };
  };
  const requests = [
    ...members.map(({ sequence, drafting }, i) => request(sequence, drafting.state, asked[i]!.tokens)),
    ...shadows.map(({ sequence, shadow, budget }) => request(sequence, shadow.state, budget)),
  ];
  const started = performance.now();
  const proposals = await drafter.propose(requests, signal);
  const draftMs = performance.now() - started;
  checkProposals(drafter, requests, proposals, vocabSize);

  for (const [i, { sequence, shadow }] of shadows.entries()) {
    shadow.expect(sequence.tokens.length, proposals[members.length + i]!.tokens);
  }
  if (lengths === undefined) return [];
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
