/** Measures of a drafter that no change of serving explains, from its predictions on recorded answers. */
import type { Predictions } from '../probe/predictions.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';
import { type Estimate, type Ratio, ratioEstimate, unpairedRatioDifference } from '../statistics/estimate.ts';
import type { SequenceAcceptance } from './acceptance-walk.ts';
import { firstSlotRatios, servedRatios } from './evaluate-assumption.ts';
import type { LookupDrafts } from './lookup-baseline.ts';

/**
 * Mean probability that the drafter gives its own choices, less the share of them that is right. Training with
 * cross-entropy on the text that is served leaves it at or below 0, early as late; text of another kind puts it above.
 */
export function overconfidence(sequences: readonly RecordedSequence[], predictions: readonly Predictions[]): Estimate {
  return ratioEstimate(
    sequences.map(({ tokens, answerStart }, index): Ratio => {
      const { anchors, slots, ids, probabilities } = predictions[index] as Predictions;
      let dividend = 0;
      let divisor = 0;
      for (let anchor = 0; anchor < anchors; anchor++) {
        for (let slot = 1; slot < slots; slot++) {
          const label = tokens[answerStart + anchor + slot];
          if (label === undefined) break;
          const row = anchor * slots + slot;
          dividend += (probabilities[row] as number) - (ids[row] === label ? 1 : 0);
          divisor++;
        }
      }
      return { dividend, divisor };
    }),
  );
}

/** By slot: mean probability that the drafter gives its own choice, over all labelled places. */
export function confidenceBySlot(
  sequences: readonly RecordedSequence[],
  predictions: readonly Predictions[],
): readonly number[] {
  const drafts = (predictions[0]?.slots ?? 1) - 1;
  return Array.from({ length: drafts }, (_, index) => {
    let sum = 0;
    let count = 0;
    for (const [i, { tokens, answerStart }] of sequences.entries()) {
      const { anchors, slots, probabilities } = predictions[i] as Predictions;
      for (let anchor = 0; anchor < anchors && answerStart + anchor + index + 1 < tokens.length; anchor++) {
        sum += probabilities[anchor * slots + index + 1] as number;
        count++;
      }
    }
    return sum / count;
  });
}

/** Of the tokens that a table of n-grams gets right at slot 1, the share that the drafter gets right too. */
export function lookupRecall(
  sequences: readonly RecordedSequence[],
  predictions: readonly Predictions[],
  lookups: readonly LookupDrafts[],
): Estimate {
  return ratioEstimate(
    sequences.map(({ tokens, answerStart }, index): Ratio => {
      const { anchors, slots, ids } = predictions[index] as Predictions;
      const lookup = lookups[index] as LookupDrafts;
      let dividend = 0;
      let divisor = 0;
      for (let anchor = 0; anchor < anchors; anchor++) {
        const row = anchor * slots + 1;
        const label = tokens[answerStart + anchor + 1];
        if (lookup[row] !== label) continue;
        divisor++;
        if (ids[row] === label) dividend++;
      }
      return { dividend, divisor };
    }),
  );
}

/** Two groups of categories that a drafter treats as differently as can be. */
export interface CategorySplit {
  readonly good: readonly string[];
  readonly bad: readonly string[];
  readonly goodTau: number;
  readonly badTau: number;
  /** Share of right predictions at slot 1 in the good group. */
  readonly goodFirstSlot: number;
  readonly difference: Estimate;
  /** Ways to split that were looked at. */
  readonly splits: number;
}

/** @returns null with fewer than two categories of two prompts each */
export function splitCategories(
  sequences: readonly RecordedSequence[],
  acceptance: readonly SequenceAcceptance[],
): CategorySplit | null {
  const byCategory = new Map<string, SequenceAcceptance[]>();
  for (const [index, { category }] of sequences.entries()) {
    byCategory.set(category, [...(byCategory.get(category) ?? []), acceptance[index] as SequenceAcceptance]);
  }
  const ranked = [...byCategory]
    .filter(([, members]) => members.length >= 2)
    .map(([category, members]) => ({ category, members, tau: ratioEstimate(servedRatios(members)).value }))
    .sort((a, b) => b.tau - a.tau);
  let best: CategorySplit | null = null;
  for (let cut = 1; cut < ranked.length; cut++) {
    const good = ranked.slice(0, cut);
    const bad = ranked.slice(cut);
    const members = (group: typeof good) => group.flatMap((entry) => entry.members);
    const goodRatios = servedRatios(members(good));
    const badRatios = servedRatios(members(bad));
    const split: CategorySplit = {
      good: good.map(({ category }) => category),
      bad: bad.map(({ category }) => category),
      goodTau: ratioEstimate(goodRatios).value,
      badTau: ratioEstimate(badRatios).value,
      goodFirstSlot: ratioEstimate(firstSlotRatios(members(good))).value,
      difference: unpairedRatioDifference(goodRatios, badRatios),
      splits: ranked.length - 1,
    };
    if (best === null || contrast(split) > contrast(best)) best = split;
  }
  return best;
}

/** How many times as many draft tokens are accepted in the good group. */
export function contrast({ goodTau, badTau }: Pick<CategorySplit, 'goodTau' | 'badTau'>): number {
  return (goodTau - 1) / Math.max(badTau - 1, 1e-6);
}
