/** How likely draft tokens are to be accepted, learned from what was. */

/** What is known of one draft token before it is verified. */
export interface DraftSlot {
  /** Place in the draft, from 0. */
  readonly slot: number;
  /** The drafter's own probability of the token, where it gives one. */
  readonly confidence: number | null;
  /** Whether the request is sampled: a draw agrees with a guess less often than the best token does. */
  readonly sampled: boolean;
}

const CONFIDENCE_BINS = 10;
/** Slots behind this one are taken together: few drafts get that far. */
const LAST_SLOT = 7;
/** Observations that the drafter's word counts for. */
const PRIOR_WEIGHT = 6;
/** What is believed of a drafter that gives no probabilities. */
const PRIOR_WITHOUT_CONFIDENCE = 0.5;
/** Older observations fade: text and sequences change. */
const FORGET = 0.998;

interface Count {
  accepted: number;
  evaluated: number;
}

/**
 * Calibrates a drafter's confidence: the probability that a draft token is accepted, given that all before it were. A
 * drafter is right less or more often than it believes, and differently by slot, so each slot and each tenth of confidence
 * has its own count (histogram binning, Zadrozny and Elkan 2001), with the drafter's word as a prior.
 */
export class AcceptanceModel {
  readonly #counts = new Map<number, Count>();

  /** Probability of acceptance of a slot whose predecessors are accepted, 0..1. */
  probability(slot: DraftSlot): number {
    const { accepted, evaluated } = this.#counts.get(binOf(slot)) ?? { accepted: 0, evaluated: 0 };
    const prior = slot.confidence ?? PRIOR_WITHOUT_CONFIDENCE;
    return (accepted + PRIOR_WEIGHT * prior) / (evaluated + PRIOR_WEIGHT);
  }

  /** To be told of slots that were compared with the target's choice: those behind a rejected one were not. */
  observe(slot: DraftSlot, accepted: boolean): void {
    const bin = binOf(slot);
    const count = this.#counts.get(bin) ?? { accepted: 0, evaluated: 0 };
    count.accepted = count.accepted * FORGET + (accepted ? 1 : 0);
    count.evaluated = count.evaluated * FORGET + 1;
    this.#counts.set(bin, count);
  }
}

function binOf({ slot, confidence, sampled }: DraftSlot): number {
  const bin = confidence === null ? CONFIDENCE_BINS : Math.min(Math.floor(confidence * CONFIDENCE_BINS), CONFIDENCE_BINS - 1);
  return ((sampled ? 1 : 0) * (LAST_SLOT + 1) + Math.min(slot, LAST_SLOT)) * (CONFIDENCE_BINS + 1) + bin;
}
