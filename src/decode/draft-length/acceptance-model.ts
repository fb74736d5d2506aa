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
/** Observations that the drafter's word, corrected by how true it has been over all slots, counts for. */
const PRIOR_WEIGHT = 6;
/** Expected acceptances that no correction at all counts for. */
const CORRECTION_WEIGHT = 3;
/** What is believed of a drafter that gives no probabilities. */
const PRIOR_WITHOUT_CONFIDENCE = 0.5;
/** Older observations fade: text and sequences change. */
const FORGET = 0.998;

interface Count {
  accepted: number;
  evaluated: number;
}

/** Over all slots. */
interface Truth {
  accepted: number;
  /** Acceptances that the drafter's word promised. */
  promised: number;
}

/**
 * Calibrates a drafter's confidence: the probability that a draft token is accepted, given that all before it were. A
 * drafter is right less or more often than it believes, and differently by slot, so each slot and each tenth of confidence
 * has its own count (histogram binning, Zadrozny and Elkan 2001). The prior of each is the drafter's word, times how much of it
 * has come true so far: a drafter that is wrong throughout is found out before every count has its own observations.
 */
export class AcceptanceModel {
  readonly #counts = new Map<number, Count>();
  readonly #truth: readonly [greedy: Truth, sampled: Truth] = [
    { accepted: 0, promised: 0 },
    { accepted: 0, promised: 0 },
  ];

  /** Probability of acceptance of a slot whose predecessors are accepted, 0..1. */
  probability(slot: DraftSlot): number {
    const { accepted, evaluated } = this.#counts.get(binOf(slot)) ?? { accepted: 0, evaluated: 0 };
    const truth = this.#truth[slot.sampled ? 1 : 0];
    const correction = (truth.accepted + CORRECTION_WEIGHT) / (truth.promised + CORRECTION_WEIGHT);
    const prior = Math.min(promise(slot) * correction, 1);
    return (accepted + PRIOR_WEIGHT * prior) / (evaluated + PRIOR_WEIGHT);
  }

  /** To be told of slots that were compared with the target's choice: those behind a rejected one were not. */
  observe(slot: DraftSlot, accepted: boolean): void {
    const bin = binOf(slot);
    const count = this.#counts.get(bin) ?? { accepted: 0, evaluated: 0 };
    count.accepted = count.accepted * FORGET + (accepted ? 1 : 0);
    count.evaluated = count.evaluated * FORGET + 1;
    this.#counts.set(bin, count);
    const truth = this.#truth[slot.sampled ? 1 : 0];
    truth.accepted = truth.accepted * FORGET + (accepted ? 1 : 0);
    truth.promised = truth.promised * FORGET + promise(slot);
  }
}

function promise({ confidence }: DraftSlot): number {
  return confidence ?? PRIOR_WITHOUT_CONFIDENCE;
}

function binOf({ slot, confidence, sampled }: DraftSlot): number {
  const bin = confidence === null ? CONFIDENCE_BINS : Math.min(Math.floor(confidence * CONFIDENCE_BINS), CONFIDENCE_BINS - 1);
  return ((sampled ? 1 : 0) * (LAST_SLOT + 1) + Math.min(slot, LAST_SLOT)) * (CONFIDENCE_BINS + 1) + bin;
}
