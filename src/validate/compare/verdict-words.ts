/** What a paired difference means, in a word and in a sentence. */
import { formatDifference } from '../report/format-figure.ts';
import type { Pair } from './comparison-schema.ts';
import type { Difference } from './paired-difference.ts';

const SIGNIFICANCE = 0.05;

export interface VerdictOptions {
  readonly a: string;
  readonly b: string;
  readonly prompts: number;
  /** Adjusted for the number of pairs. */
  readonly p: number;
  readonly margin: number;
}

/** A difference counts when it is significant and its interval is not inside the margin, which would make it too small to matter. */
export function verdictOf({ acceptanceLength: { low, high, value } }: Difference, p: number, margin: number): Pair['verdict'] {
  if (value === null || low === null || high === null) return 'undecided';
  if (low > -margin && high < margin) return 'equivalent';
  if (p < SIGNIFICANCE && low > 0) return 'better';
  if (p < SIGNIFICANCE && high < 0) return 'worse';
  return 'undecided';
}

export function verdictWords(difference: Difference, { a, b, prompts, p, margin }: VerdictOptions): string {
  const figures = `${formatDifference(difference.acceptanceLength)} tokens per round over ${prompts} prompts`;
  const { higher, lower } = difference.prompts;
  switch (verdictOf(difference, p, margin)) {
    case 'better':
      return `${b} is better than ${a}: ${figures}, higher on ${higher} prompts and lower on ${lower}.`;
    case 'worse':
      return `${b} is worse than ${a}: ${figures}, lower on ${lower} prompts and higher on ${higher}.`;
    case 'equivalent':
      return `${b} and ${a} are as good: ${figures}, within ${margin} either way.`;
    case 'undecided':
      return `${b} and ${a} cannot be told apart with these prompts: ${figures}; more prompts would narrow the interval.`;
  }
}
