/** Two drafters on the same prefixes. */
import { type ForcedRun, prefixLength, rightSlots, walk } from '../report/forced-walk.ts';
import { Bootstrap, type Interval } from '../report/interval.ts';
import { pairedRatioDifference, type Ratio } from '../statistics/estimate.ts';
import type { Pair } from './comparison-schema.ts';

/** One prompt's answer as each of the two saw it. */
export interface RunPair {
  readonly category: string;
  readonly a: ForcedRun;
  readonly b: ForcedRun;
}

export interface DifferenceOptions {
  readonly draftTokens: number;
  readonly seed: number;
}

/** Everything of a pair but what words and other pairs decide. */
export type Difference = Omit<Pair, 'a' | 'b' | 'verdict' | 'words'>;

export function walkedRatio(run: ForcedRun, draftTokens: number): Ratio {
  const rounds = walk(run, draftTokens);
  return { dividend: rounds.reduce((sum, { emitted }) => sum + emitted, 0), divisor: rounds.length };
}

/** @returns with a p-value that is not adjusted */
export function pairedDifference(pairs: readonly RunPair[], { draftTokens, seed }: DifferenceOptions): Difference {
  const bootstrap = new Bootstrap(pairs.length, seed);
  const walked = pairs.map(({ category, a, b }) => ({
    category,
    a: walkedRatio(a, draftTokens),
    b: walkedRatio(b, draftTokens),
  }));
  const prefixes = pairs.map(({ a, b }) => ({ a: prefixesOf(a, draftTokens), b: prefixesOf(b, draftTokens) }));
  const anchors = prefixes.flatMap(({ a, b }) => a.map((length, i) => (b[i] as number) - length));
  const lengths = walked.map(({ a, b }) => b.dividend / b.divisor - a.dividend / a.divisor);
  const acceptanceLength = difference(bootstrap, walked);
  const { standardError, p } = pairedRatioDifference(
    walked.map(({ b }) => b),
    walked.map(({ a }) => a),
  );
  return {
    acceptanceLength,
    streak: difference(
      bootstrap,
      prefixes.map(({ a, b }) => ({ a: meanRatio(a), b: meanRatio(b) })),
    ),
    accuracyBySlot: Array.from({ length: draftTokens }, (_, slot) =>
      difference(
        bootstrap,
        pairs.map(({ a, b }) => ({ a: slotRatio(a, slot), b: slotRatio(b, slot) })),
      ),
    ),
    acceptanceByCategory: Object.fromEntries(
      [...new Set(pairs.map(({ category }) => category))].map((category) => {
        const members = walked.filter((entry) => entry.category === category);
        return [category, difference(new Bootstrap(members.length, seed), members)];
      }),
    ),
    anchors: {
      longer: anchors.filter((gain) => gain > 0).length,
      equal: anchors.filter((gain) => gain === 0).length,
      shorter: anchors.filter((gain) => gain < 0).length,
    },
    prompts: {
      higher: lengths.filter((gain) => gain > 0).length,
      equal: lengths.filter((gain) => gain === 0).length,
      lower: lengths.filter((gain) => gain < 0).length,
    },
    // Two-sided. Without any spread there is nothing to judge a difference by.
    p: standardError > 0 ? Math.min(2 * Math.min(p, 1 - p), 1) : 1,
  };
}

function difference(bootstrap: Bootstrap, pairs: readonly { readonly a: Ratio; readonly b: Ratio }[]): Interval {
  return bootstrap.difference(
    pairs.map(({ b }) => b),
    pairs.map(({ a }) => a),
  );
}

function prefixesOf(run: ForcedRun, draftTokens: number): readonly number[] {
  return run.anchors.map((_, i) => prefixLength(rightSlots(run, i).slice(0, draftTokens)));
}

function meanRatio(values: readonly number[]): Ratio {
  return { dividend: values.reduce((sum, value) => sum + value, 0), divisor: values.length };
}

/** Of all places inside the answer, which are the same for both: a drafter that leaves one out is not right there. */
function slotRatio(run: ForcedRun, slot: number): Ratio {
  const right = run.anchors.filter((_, i) => rightSlots(run, i)[slot] === true);
  return { dividend: right.length, divisor: run.anchors.filter((_, i) => i + 1 + slot < run.tokens.length).length };
}
