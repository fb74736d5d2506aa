/** How accuracy falls from slot to slot, and what a healthy drafter's does. */

import { type Estimate, jackknifeEstimate } from '../statistics/estimate.ts';
import { median } from '../statistics/median.ts';
import type { SequenceAcceptance } from './acceptance-walk.ts';

/**
 * The gamma that published recipes give the loss weight exp(-(k-1) / gamma) of slot k: 4, 5 and 7 for blocks of 8, 10 and
 * 16 (Chen, Liang and Liu 2026, section 4), and the line through them in between and beyond.
 */
export function recommendedGamma(blockSize: number): number {
  const KNOWN = [
    [8, 4],
    [10, 5],
    [16, 7],
  ] as const;
  const [a, b] = blockSize <= 10 ? [KNOWN[0], KNOWN[1]] : [KNOWN[1], KNOWN[2]];
  return Math.max(a[1] + ((blockSize - a[0]) * (b[1] - a[1])) / (b[0] - a[0]), 1);
}

/**
 * By slot: share of right predictions where all slots before were right; null with none to judge by. Given a right prefix,
 * a healthy drafter's chance hardly falls from slot to slot.
 */
export function conditionalAccuracy(sequences: readonly SequenceAcceptance[]): readonly (number | null)[] {
  return conditionalCounts(sequences).map(({ right, reached }) => (reached === 0 ? null : right / reached));
}

interface ConditionalCount {
  readonly right: number;
  readonly reached: number;
}

function conditionalCounts(sequences: readonly SequenceAcceptance[]): readonly ConditionalCount[] {
  const drafts = sequences[0]?.right.length ?? 0;
  const counts = Array.from({ length: drafts }, () => ({ right: 0, reached: 0 }));
  for (const { prefixes } of sequences) {
    for (const [anchor, prefix] of prefixes.entries()) {
      // Behind anchor a of n there are n - a labels.
      const labelled = Math.min(drafts, prefixes.length - anchor);
      for (let slot = 0; slot < labelled && slot <= prefix; slot++) {
        const count = counts[slot] as { right: number; reached: number };
        count.reached++;
        if (slot < prefix) count.right++;
      }
    }
  }
  return counts;
}

/** Slots with fewer anchors say too little about the shape. */
const LEAST_REACHED = 20;

/** Log-odds of the conditional accuracy by slot, as far as there are anchors to judge by; half a count is added to either side. */
export function logOdds(sequences: readonly SequenceAcceptance[]): readonly number[] {
  const odds: number[] = [];
  for (const { right, reached } of conditionalCounts(sequences)) {
    if (reached < LEAST_REACHED) break;
    odds.push(Math.log((right + 0.5) / (reached - right + 0.5)));
  }
  return odds;
}

/** A fall of the log-odds between neighbours that no trained slots have. */
const CLIFF = 0.6;

/**
 * How many drafts of a block were trained, seen from a longer one: slots beyond fall off from their neighbour, those before
 * hardly do.
 * @returns null where nothing falls off
 */
export function trainedDrafts(sequences: readonly SequenceAcceptance[]): number | null {
  const odds = logOdds(sequences);
  const falls = odds.slice(1).map((value, i) => (odds[i] as number) - value);
  const steepest = falls.indexOf(Math.max(...falls));
  return steepest >= 0 && (falls[steepest] as number) >= CLIFF ? steepest + 1 : null;
}

/**
 * Fall of the conditional log-odds per slot: the median over neighbours, so that one odd slot does not make a shape.
 * The loss weights of a recipe fall by 1 / gamma per slot.
 */
export function decayPerSlot(sequences: readonly SequenceAcceptance[]): Estimate {
  return jackknifeEstimate(sequences, (kept) => {
    const odds = logOdds(kept);
    return median(odds.slice(1).map((value, i) => (odds[i] as number) - value));
  });
}

/** Log-odds of the unconditional accuracy of the first slot less those of the last. */
export function accuracyFall(sequences: readonly SequenceAcceptance[]): Estimate {
  return jackknifeEstimate(sequences, (kept) => {
    const drafts = kept[0]?.right.length ?? 0;
    const odds = (slot: number) => {
      const right = kept.reduce((sum, s) => sum + (s.right[slot] ?? 0), 0);
      const labelled = kept.reduce((sum, s) => sum + (s.labelled[slot] ?? 0), 0);
      return Math.log((right + 0.5) / (labelled - right + 0.5));
    };
    return odds(0) - odds(drafts - 1);
  });
}

/** Tokens per round of a drafter whose conditional accuracy falls from slot 1's as the recommended loss weights do. */
export function tauOfHealthyDecay(firstSlot: number, blockSize: number): number {
  const first = Math.log(firstSlot / (1 - firstSlot));
  const gamma = recommendedGamma(blockSize);
  let tau = 1;
  let reached = 1;
  for (let slot = 0; slot < blockSize - 1; slot++) {
    reached /= 1 + Math.exp(-(first - slot / gamma));
    tau += reached;
  }
  return tau;
}

/**
 * How much the forced tau would grow if blocks had more slots and the new ones were as good as the last two are.
 * @param slots in all, the anchor's included
 */
export function expectedGrowth(sequences: readonly SequenceAcceptance[], slots: number): number {
  const counts = conditionalCounts(sequences);
  const last = counts.slice(-2);
  const chance =
    last.reduce((sum, { right }) => sum + right, 0) /
    Math.max(
      last.reduce((sum, { reached }) => sum + reached, 0),
      1,
    );
  let anchors = 0;
  let growth = 0;
  for (const { prefixes } of sequences) {
    for (const [anchor, prefix] of prefixes.entries()) {
      anchors++;
      if (prefix < counts.length) continue;
      const labelled = Math.min(slots - 1, prefixes.length - anchor) - prefix;
      for (let slot = 1; slot <= labelled; slot++) growth += chance ** slot;
    }
  }
  return growth / Math.max(anchors, 1);
}
