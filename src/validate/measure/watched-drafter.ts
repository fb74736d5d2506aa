import type { CommittedRows, Drafter, DraftRequest, DraftState, Proposal } from '../../drafter/drafter.ts';
import { draftLogits, type MeasuredDrafter } from './measured-drafter.ts';

/** What one drafter said in the last round about one sequence. */
export interface Saying {
  readonly proposal: Proposal;
  /** Logits of a slot, from 0, in rows of the drafter's head; null where the drafter has none. Valid until its next proposal. */
  readonly logits: ((slot: number) => Float32Array) | null;
}

/**
 * Several drafters that see the same sequences. The first one's drafts are used; what all of them said stays readable until
 * the next round. Not an owner.
 */
export class WatchedDrafter implements Drafter {
  readonly kind = 'watched';
  readonly taps: readonly number[];
  readonly maxDraftTokens: number;
  readonly #members: readonly MeasuredDrafter[];

  /** @param members at least one */
  constructor(members: readonly MeasuredDrafter[]) {
    this.#members = members;
    this.taps = [...new Set(members.flatMap(({ drafter }) => drafter.taps))];
    this.maxDraftTokens = Math.max(...members.map(({ drafter }) => drafter.maxDraftTokens));
  }

  open(): WatchedState {
    return new WatchedState(this.#members.map(({ drafter }) => drafter.open()));
  }

  async propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    const watched = requests.map((request) => ({ ...request, state: request.state as WatchedState }));
    for (const { state } of watched) state.sayings = [];
    for (const [member, { drafter }] of this.#members.entries()) {
      const asked = watched.map(({ state, anchor, budget }) => ({
        state: state.members[member] as DraftState,
        anchor,
        budget: Math.min(budget, drafter.maxDraftTokens),
      }));
      const proposals = await drafter.propose(asked, signal);
      const logits = draftLogits(drafter);
      let row = 0;
      for (const [i, { state }] of watched.entries()) {
        const first = row;
        row += asked[i]?.budget ?? 0;
        state.sayings.push({
          proposal: proposals[i] as Proposal,
          logits:
            logits === null
              ? null
              : (slot) => logits.data.subarray((first + slot) * logits.rows, (first + slot + 1) * logits.rows),
        });
      }
    }
    return watched.map(({ state }) => (state.sayings[0] as Saying).proposal);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

export class WatchedState implements DraftState {
  readonly members: readonly DraftState[];
  /** By member; empty before the first proposal. */
  sayings: Saying[] = [];

  constructor(members: readonly DraftState[]) {
    this.members = members;
  }

  observe(rows: CommittedRows): void {
    for (const member of this.members) member.observe(rows);
  }

  rewind(length: number): void {
    for (const member of this.members) member.rewind(length);
  }

  [Symbol.dispose](): void {
    for (const member of this.members) member[Symbol.dispose]();
  }
}
