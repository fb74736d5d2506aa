/** What happened in one verification, token by token. */
import type { ShortDraftReason } from './speculation-record.ts';
import type { Position, TokenId } from './token.ts';

/** Probabilities are the target's at the request's temperature (at 1 when it is 0), before top-k, top-p and min-p. */
export interface RoundTrace {
  /** Position of the anchor in the sequence. */
  readonly position: Position;
  /** The token that the draft follows. */
  readonly anchor: TokenId;
  readonly drafted: readonly DraftedToken[];
  /** What the target chose and was emitted. */
  readonly emitted: readonly { readonly token: TokenId; readonly targetProbability: number }[];
  /** Tokens that the target preferred to the rejected one; null when none was rejected. */
  readonly rejectedRank: number | null;
  readonly end: 'rejected' | 'whole' | 'answerEnded' | 'noDraft';
  /** Why the draft was short or missing; null when it was not. */
  readonly shortBy: ShortDraftReason | null;
}

/** Which part of an answer a token belongs to. */
export type Phase = 'content' | 'reasoning' | 'tool';

export interface PhasedRound extends RoundTrace {
  /** Of the anchor. */
  readonly phase: Phase;
}

export interface DraftedToken {
  readonly token: TokenId;
  /** The drafter's own probability; null where it gives none. */
  readonly confidence: number | null;
  /** Null for tokens that were not compared. */
  readonly targetProbability: number | null;
  readonly outcome: 'accepted' | 'rejected' | 'discarded';
}
