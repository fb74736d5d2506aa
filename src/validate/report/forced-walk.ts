/**
 * Serving, predicted from teacher forcing. The text is the same whatever is drafted, so the rounds of serving visit some of
 * the anchors that were asked about: behind each, the right prefix and one token more are emitted.
 */
import type { ForcedAnchor, ForcedAnswer } from '../measure/answer-records.ts';

/** One answer as one drafter saw it. */
export interface ForcedRun {
  readonly tokens: readonly number[];
  readonly anchors: readonly ForcedAnchor[];
}

export function forcedRun(answer: ForcedAnswer, drafter: string): ForcedRun {
  return { tokens: answer.tokens, anchors: answer.anchors[drafter] ?? [] };
}

/** Slots of an anchor that lie inside the answer, and for each whether it is right. */
export function rightSlots({ tokens, anchors }: ForcedRun, anchor: number): readonly boolean[] {
  const { draft } = anchors[anchor] as ForcedAnchor;
  return draft.slice(0, tokens.length - anchor - 1).map((token, slot) => token === tokens[anchor + 1 + slot]);
}

/** Length of the beginning that is right throughout. */
export function prefixLength(right: readonly boolean[]): number {
  const wrong = right.indexOf(false);
  return wrong < 0 ? right.length : wrong;
}

export interface WalkedRound {
  /** Index of the anchor in the answer. */
  readonly anchor: number;
  readonly accepted: number;
  readonly emitted: number;
  /** Draft slots inside the answer. */
  readonly inside: number;
}

/** @param draftTokens the longest draft; a drafter that fills whole blocks may say something else in shorter ones */
export function walk(run: ForcedRun, draftTokens = Number.POSITIVE_INFINITY): readonly WalkedRound[] {
  const rounds: WalkedRound[] = [];
  for (let anchor = 0; anchor < run.anchors.length; ) {
    const right = rightSlots(run, anchor).slice(0, draftTokens);
    const accepted = prefixLength(right);
    const emitted = Math.min(accepted + 1, run.anchors.length - anchor);
    rounds.push({ anchor, accepted, emitted, inside: right.length });
    anchor += emitted;
  }
  return rounds;
}
