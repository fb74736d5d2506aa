/**
 * Acceptance from teacher-forced predictions.
 *
 * Under greedy decoding the text is the target's own whatever is drafted. So the rounds of serving visit some of the
 * anchors that teacher forcing evaluates, in the same state: walking from anchor to anchor gives what serving would measure.
 */
import type { TokenId } from '../../core/token.ts';
import type { Predictions } from '../probe/predictions.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';

/** What a slot is compared with: the token behind an answer's first `offset` tokens; undefined behind its end. */
export type LabelAt = (offset: number) => TokenId | undefined;

export interface SequenceAcceptance {
  /** Correct leading slots behind each anchor, cut at the answer's end. */
  readonly prefixes: readonly number[];
  /** Rounds that serving needs. */
  readonly cycles: number;
  /** Tokens that they emit: all but the first, which the prompt's own rows choose. */
  readonly emitted: number;
  /** By slot 1 …: right predictions behind all anchors, and labels there. */
  readonly right: readonly number[];
  readonly labelled: readonly number[];
  /** By slot 1 …: rounds of serving that accepted it, and rounds in which it lay inside the answer. */
  readonly accepted: readonly number[];
  readonly inside: readonly number[];
}

/** The answer's own tokens as labels. */
export function ownLabels({ tokens, answerStart }: RecordedSequence): LabelAt {
  return (offset) => tokens[answerStart + offset];
}

/**
 * @param labels what slot k behind anchor a is compared with is `labels(a + k)`
 * @param slotShift compare the prediction of slot k + this instead of slot k
 */
export function sequenceAcceptance(predictions: Predictions, labels: LabelAt, slotShift = 0): SequenceAcceptance {
  const { anchors, slots, ids } = predictions;
  const drafts = slots - 1;
  const zeros = () => new Array<number>(drafts).fill(0);
  const right = zeros();
  const labelled = zeros();
  const prefixes: number[] = [];
  for (let anchor = 0; anchor < anchors; anchor++) {
    let prefix = 0;
    let unbroken = true;
    for (let slot = 1; slot <= drafts; slot++) {
      const label = labels(anchor + slot);
      if (label === undefined) break;
      labelled[slot - 1]! += 1;
      const source = slot + slotShift;
      const matches = source >= 0 && source < slots && ids[anchor * slots + source] === label;
      if (matches) right[slot - 1]! += 1;
      unbroken &&= matches;
      if (unbroken) prefix++;
    }
    prefixes.push(prefix);
  }
  return { prefixes, right, labelled, ...walk(prefixes, drafts) };
}

function walk(prefixes: readonly number[], drafts: number) {
  const accepted = new Array<number>(drafts).fill(0);
  const inside = new Array<number>(drafts).fill(0);
  let cycles = 0;
  let emitted = 0;
  for (let anchor = 0; anchor < prefixes.length; ) {
    const prefix = prefixes[anchor] as number;
    const left = prefixes.length - anchor;
    for (let slot = 0; slot < Math.min(drafts, left); slot++) {
      inside[slot]! += 1;
      if (slot < prefix) accepted[slot]! += 1;
    }
    const step = Math.min(prefix + 1, left);
    cycles++;
    emitted += step;
    anchor += step;
  }
  return { cycles, emitted, accepted, inside };
}

export interface Acceptance {
  /** 1 + mean correct prefix over all anchors. */
  readonly forcedTau: number;
  /** Tokens per round of serving, pooled. */
  readonly servedTau: number;
  readonly cycles: number;
  /** By slot: share of right predictions over all anchors. */
  readonly accuracy: readonly number[];
  /** By slot: share of the rounds with the slot inside the answer that accepted it. */
  readonly acceptance: readonly number[];
}

export function pooledAcceptance(sequences: readonly SequenceAcceptance[]): Acceptance {
  const total = (value: (sequence: SequenceAcceptance) => number) => sequences.reduce((sum, s) => sum + value(s), 0);
  const drafts = sequences[0]?.right.length ?? 0;
  const bySlot = (part: 'right' | 'accepted', whole: 'labelled' | 'inside') =>
    Array.from({ length: drafts }, (_, slot) => total((s) => s[part][slot] ?? 0) / total((s) => s[whole][slot] ?? 0));
  const anchors = total((s) => s.prefixes.length);
  const cycles = total((s) => s.cycles);
  return {
    forcedTau: 1 + total((s) => s.prefixes.reduce((sum, prefix) => sum + prefix, 0)) / anchors,
    servedTau: total((s) => s.emitted) / cycles,
    cycles,
    accuracy: bySlot('right', 'labelled'),
    acceptance: bySlot('accepted', 'inside'),
  };
}
