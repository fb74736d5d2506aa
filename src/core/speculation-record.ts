/** The one record of speculation that every statistic is derived from. */

/** Why a round verified fewer draft tokens than the request may have, or none. */
export type ShortDraftReason =
  /** The server runs without a drafter. */
  | 'no-drafter'
  /** The request asked for plain decoding. */
  | 'disabled-by-request'
  /** Only one more token is allowed, and the target's own choice fills it. */
  | 'near-max-tokens'
  /** The context has no room for draft rows. */
  | 'context-limit'
  /** The drafter had nothing to propose. */
  | 'no-proposal'
  /** Drafts of this sequence have cost more time than they saved. */
  | 'low-acceptance'
  /** The draft tokens were too unlikely to be accepted to be worth their rows. */
  | 'low-confidence'
  /** With this many sequences in the step, draft rows cost more time than they save. */
  | 'load'
  /** The request's grammar forbids the rest of the draft. */
  | 'grammar'
  /** The drafter failed on this sequence; it goes on without it. */
  | 'drafter-failed';

/** One verification: a target step that chose at least one token for this sequence. */
export interface RoundRecord {
  /** Draft tokens handed to verification. */
  readonly drafted: number;
  /** Draft tokens compared with the target's choice: up to the first mismatch, or to where the answer ended. */
  readonly evaluated: number;
  /** Draft tokens that equalled the target's choice and were emitted; the bonus token is not among them. */
  readonly accepted: number;
  /** Tokens emitted: the accepted ones and, unless the answer ended inside the block, one of the target's own. */
  readonly emitted: number;
}

/**
 * Speculation in one request. The first token, which the prompt's own rows choose, is not a round.
 * Identities: drafted = accepted + rejected + discarded, where rejected = evaluated - accepted (0 or 1 a round)
 * and discarded = drafted - evaluated.
 */
export interface SpeculationRecord {
  /** Name of the drafter, `none` when there is none. */
  readonly drafter: string;
  /** The longest draft that this request could get: vLLM's `num_spec_tokens`. */
  readonly maxDraftTokens: number;
  readonly rounds: readonly RoundRecord[];
  /** Rounds without draft tokens, by reason. Their sum is the number of rounds with `drafted` 0. */
  readonly noDraft: Readonly<Partial<Record<ShortDraftReason, number>>>;
  /** Rounds with some draft tokens, but fewer than {@link maxDraftTokens}, by reason. */
  readonly shortened: Readonly<Partial<Record<ShortDraftReason, number>>>;
  /** What the drafter said when it failed, else null. */
  readonly drafterError: string | null;
}
