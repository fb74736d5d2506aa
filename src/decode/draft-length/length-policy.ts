/** PORT: who decides how long drafts are. Whatever is decided, the text is the same. */
import type { RoundRecord, ShortDraftReason } from '../../core/speculation-record.ts';
import type { Proposal } from '../../drafter/drafter.ts';
import type { Sequence } from '../sequence.ts';

/** A limit on one sequence's draft, and the reason when it is lower than what was asked for. */
export interface DraftLimit {
  readonly tokens: number;
  readonly reason: ShortDraftReason | null;
}

/** A sequence that may have a draft. */
export interface DraftCandidate {
  readonly sequence: Sequence;
  /** Draft tokens that it may have. */
  readonly budget: number;
  /** Rows that its draft would take in first. */
  readonly waiting: number;
}

/** The step that drafts are for. */
export interface StepContext {
  /** Sequences that decode in it, those that do not draft included. */
  readonly decoding: number;
}

export interface LengthPolicy {
  /** Before drafting: how much to ask of the drafter for each sequence. */
  ask(sequences: readonly DraftCandidate[], step: StepContext): readonly DraftLimit[];
  /**
   * After drafting: how much of each draft to verify.
   * @param draftMs what drafting took
   */
  trim(
    drafts: readonly { readonly sequence: Sequence; readonly proposal: Proposal }[],
    step: StepContext,
    draftMs: number,
  ): readonly DraftLimit[];
  /** After verifying. */
  learn(verified: readonly { readonly sequence: Sequence; readonly proposal: Proposal; readonly round: RoundRecord }[]): void;
  /** Of every step in which all sequences decode. */
  learnStep(rows: number, sequences: number, verifyMs: number): void;
}
