/**
 * How much of the recorded material each question gets. It depends on sizes alone, not on the clock, so that the same
 * drafter gets the same diagnosis on any machine.
 */
import type { DflashConfig } from '../drafter/dflash/dflash-config.ts';
import { type RecordedSequence, shortened } from './recording/recorded-sequence.ts';

/** Multiplications that one counterfactual may cost while there are about 80 of them; some 0.2 s on two cores. */
const SCREENING_BUDGET = 6e9;
const SCREENING_SEQUENCES = 12;
const LEAST_SCREENING_TOKENS = 17;
/** Multiplications for the choices of all layers. */
const TEACHER_BUDGET = 4e11;
const LEAST_TEACHER_SEQUENCES = 8;
const MOST_SPARSE_LAYERS = 10;

/** Of one row of a block, the head included and attention left out. */
export function multiplicationsPerRow(config: DflashConfig, headRows: number): number {
  const { hidden, intermediate, heads, kvHeads, headDim, layers } = config;
  return layers * hidden * ((2 * heads + 2 * kvHeads) * headDim + 3 * intermediate) + hidden * headRows;
}

/** Some sequences, evenly from all categories, with answers as long as the budget allows. */
export function screeningSequences(
  sequences: readonly RecordedSequence[],
  blockSize: number,
  perRow: number,
): readonly RecordedSequence[] {
  const chosen = evenly(sequences, SCREENING_SEQUENCES);
  const anchors = SCREENING_BUDGET / (chosen.length * blockSize * perRow);
  const tokens = Math.max(Math.floor(anchors) + 1, LEAST_SCREENING_TOKENS);
  return chosen.map((sequence) => shortened(sequence, tokens));
}

export interface TeacherPlan {
  readonly sequences: readonly number[];
  readonly layers: readonly number[];
}

/**
 * @param taps layers whose choices are the likeliest to have been taken for the target's
 * @param perRow multiplications of the target's head
 */
export function teacherPlan(
  sequences: readonly RecordedSequence[],
  layers: number,
  taps: readonly number[],
  perRow: number,
): TeacherPlan {
  const all = Array.from({ length: layers }, (_, layer) => layer);
  const rows = (chosen: readonly RecordedSequence[]) => chosen.reduce((sum, s) => sum + s.tokens.length - s.answerStart, 0);
  if (layers * rows(sequences) * perRow <= TEACHER_BUDGET) return { sequences: sequences.map((_, i) => i), layers: all };
  const step = Math.max(layers / MOST_SPARSE_LAYERS, 1);
  const sparse = [
    ...new Set([
      ...Array.from({ length: MOST_SPARSE_LAYERS }, (_, i) => Math.floor(i * step)),
      ...taps.filter((tap) => tap >= 0 && tap < layers),
      layers - 2,
      layers - 1,
    ]),
  ].sort((a, b) => a - b);
  const perSequence = (sparse.length * rows(sequences) * perRow) / sequences.length;
  const count = Math.min(Math.max(Math.floor(TEACHER_BUDGET / perSequence), LEAST_TEACHER_SEQUENCES), sequences.length);
  const chosen = new Set(evenly(sequences, count));
  return { sequences: sequences.flatMap((sequence, i) => (chosen.has(sequence) ? [i] : [])), layers: sparse };
}

/** The first of each category, then the second of each, and so on. */
export function evenly(sequences: readonly RecordedSequence[], count: number): readonly RecordedSequence[] {
  const byCategory = new Map<string, RecordedSequence[]>();
  for (const sequence of sequences) {
    byCategory.set(sequence.category, [...(byCategory.get(sequence.category) ?? []), sequence]);
  }
  const chosen: RecordedSequence[] = [];
  for (let round = 0; chosen.length < Math.min(count, sequences.length); round++) {
    for (const members of byCategory.values()) {
      const sequence = members[round];
      if (sequence !== undefined && chosen.length < count) chosen.push(sequence);
    }
  }
  return chosen;
}
