/** Which counterfactual, if any, explains something. */

import type { Counterfactual } from '../probe/counterfactual.ts';
import type { Estimate } from '../statistics/estimate.ts';
import { holmAdjusted } from '../statistics/holm.ts';
import type { SequenceAcceptance } from './acceptance-walk.ts';
import type { AcceptanceGain } from './evaluate-assumption.ts';

/**
 * The least change of tokens per round that matters, as a share of them. A real but smaller effect is not worth a finding:
 * it is of the order of what changes between two runs of the same training.
 */
export const LEAST_EFFECT = 0.03;
/** New slots of a longer block must come so near to what the slots before them promise. */
export const LEAST_NEW_SLOTS = 0.75;
/**
 * And gain such a share of the tokens per round: drafters often go on beyond the block they were trained with for a slot or
 * two, which is a hint for tuning and no fault.
 */
export const LEAST_GROWTH = 0.1;
/** Family-wise error rate. */
export const SIGNIFICANCE = 0.05;

export interface ProbeOutcome {
  readonly counterfactual: Counterfactual;
  readonly gain: AcceptanceGain;
  /** Gain of the forced tau when only slots that both block sizes have are counted. */
  readonly sharedSlotsGain: Estimate;
  /** Gain of the forced tau as a share of what slots as good as the last ones would add; null without more slots. */
  readonly newSlots: number | null;
  readonly acceptance: readonly SequenceAcceptance[];
  readonly onAllPrompts: boolean;
}

/** Outcomes whose gain could still be large enough, the best first up to `most`. */
export function worthAllPrompts(outcomes: readonly ProbeOutcome[], most: number): ReadonlySet<ProbeOutcome> {
  const candidates = outcomes.filter(({ gain }) => {
    const least = LEAST_EFFECT * (gain.servedTau.value - gain.servedGain.value);
    return (
      Math.max(gain.forcedGain.high, gain.servedGain.high) > least && Math.max(gain.forcedGain.value, gain.servedGain.value) > 0
    );
  });
  return new Set(candidates.sort((a, b) => compareGains(b, a)).slice(0, most));
}

function compareGains(a: ProbeOutcome, b: ProbeOutcome): number {
  return a.gain.forcedGain.value - b.gain.forcedGain.value || a.counterfactual.preference - b.counterfactual.preference;
}

/** A change that helped, and what it gained over the one before. */
export interface HelpfulChange {
  readonly outcome: ProbeOutcome;
  /** Adjusted for all counterfactuals asked. */
  readonly p: number;
}

/**
 * The changes that gain enough and not by chance.
 * @param outcomes of everything that was asked: all of them count as tests
 * @param before p-values of questions that were asked beside them
 */
export function helpfulChanges(outcomes: readonly ProbeOutcome[], before: readonly number[] = []): readonly HelpfulChange[] {
  const adjusted = holmAdjusted([...outcomes.map(({ gain }) => chanceOf(gain)), ...before]);
  return outcomes
    .map((outcome, index) => ({ outcome, p: adjusted[index] as number }))
    .filter(({ outcome, p }) => outcome.onAllPrompts && p < SIGNIFICANCE && isLarge(outcome.gain) && isPlausible(outcome));
}

/** The one of them that gains most; null: there is none. */
export function selectChange(significant: readonly HelpfulChange[]): HelpfulChange | null {
  const best = significant.reduce<HelpfulChange | null>(
    (kept, next) => (kept === null || next.outcome.gain.servedGain.value > kept.outcome.gain.servedGain.value ? next : kept),
    null,
  );
  if (best === null) return null;
  // What cannot be told apart by its gain is told apart by how likely such a mistake is.
  const equals = significant.filter(({ outcome }) => {
    const margin = Math.max(best.outcome.gain.servedGain.standardError, 0.01 * best.outcome.gain.servedTau.value);
    return best.outcome.gain.servedGain.value - outcome.gain.servedGain.value <= margin;
  });
  return equals.reduce((kept, next) =>
    next.outcome.counterfactual.preference > kept.outcome.counterfactual.preference ? next : kept,
  );
}

/** The forced gain has all anchors behind it and the served gain is what is wanted: both must be above chance. */
export function chanceOf(gain: AcceptanceGain): number {
  return Math.max(gain.forcedGain.p, gain.servedGain.p);
}

export function isLarge({ servedTau, servedGain }: AcceptanceGain): boolean {
  return servedGain.value >= LEAST_EFFECT * (servedTau.value - servedGain.value);
}

/** Gains that come about without the fault. */
function isPlausible({ counterfactual, gain, sharedSlotsGain, newSlots }: ProbeOutcome): boolean {
  switch (counterfactual.fault) {
    case 'context-inclusive':
      // The anchor's features nearly hold slot 1: a drafter that was trained to see them uses them there. One that gains at
      // late slots only is helped by a nearer context, as drafters are whose late slots learned little.
      return gain.firstSlotGain.value > 0 && gain.firstSlotGain.p < SIGNIFICANCE;
    case 'block-size':
      // Slots that were trained go on as those before them do; slots beyond gain a little in any drafter. A block that is
      // too long disturbs the slots that both sizes have.
      if (newSlots === null) return sharedSlotsGain.value > 0 && sharedSlotsGain.p < SIGNIFICANCE;
      return (
        newSlots >= LEAST_NEW_SLOTS && gain.servedGain.value >= LEAST_GROWTH * (gain.servedTau.value - gain.servedGain.value)
      );
    default:
      return true;
  }
}
