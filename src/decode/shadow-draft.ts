/** A drafter that proposes beside the one that serves a sequence, and is scored by what the target then says. */
import type { RoundRecord } from '../core/speculation-record.ts';
import type { Position, TokenId } from '../core/token.ts';
import type { Drafter, DraftState } from '../drafter/drafter.ts';

/** What would have come of a shadow draft, had it been the one to be verified. */
export interface ShadowRound extends RoundRecord {
  /** Name of the drafter that made it. */
  readonly shadow: string;
  /** What came of the draft that was verified on the same prefix. */
  readonly served: RoundRecord;
}

interface Pending {
  readonly position: Position;
  readonly tokens: readonly TokenId[];
  served: RoundRecord | null;
}

/**
 * A draft is compared with the tokens that the target chooses for its positions, in this round and, where the verified draft
 * was shorter or was rejected earlier, in later ones. Those are the tokens that its own verification would have chosen: the
 * target's choice behind a prefix does not depend on drafts, and both agree on the prefix up to the first mismatch.
 */
export class ShadowDraft implements Disposable {
  readonly name: string;
  readonly drafter: Drafter;
  readonly state: DraftState;
  /** The longest draft wanted. */
  readonly limit: number;
  #pending: Pending[] = [];

  /** @param state has observed as much as the sequence's cache holds; taken over */
  constructor(name: string, drafter: Drafter, state: DraftState, limit: number) {
    this.name = name;
    this.drafter = drafter;
    this.state = state;
    this.limit = limit;
  }

  /** Takes a draft whose first token is meant for that position. */
  expect(position: Position, tokens: readonly TokenId[]): void {
    // A round that was given up drafts again for the same position.
    this.#pending = this.#pending.filter((other) => other.position < position);
    if (tokens.length > 0) this.#pending.push({ position, tokens, served: null });
  }

  /**
   * Behind a round: the drafts that are decided now.
   * @param tokens of the sequence
   * @param ended the answer has no further tokens
   */
  settle(tokens: readonly TokenId[], ended: boolean, served: RoundRecord): ShadowRound[] {
    const decided: ShadowRound[] = [];
    this.#pending = this.#pending.filter((pending) => {
      pending.served ??= served;
      const round = outcome(pending.tokens, tokens.slice(pending.position), ended);
      if (round !== null) decided.push({ ...round, shadow: this.name, served: pending.served });
      return round === null;
    });
    return decided;
  }

  [Symbol.dispose](): void {
    this.state[Symbol.dispose]();
  }
}

/** Null while it is open how many of the draft's tokens would be accepted. */
function outcome(draft: readonly TokenId[], chosen: readonly TokenId[], ended: boolean): RoundRecord | null {
  let accepted = 0;
  while (accepted < draft.length && accepted < chosen.length && draft[accepted] === chosen[accepted]) accepted++;
  const drafted = draft.length;
  if (accepted < chosen.length) return { drafted, evaluated: Math.min(accepted + 1, drafted), accepted, emitted: accepted + 1 };
  return ended ? { drafted, evaluated: accepted, accepted, emitted: accepted } : null;
}
