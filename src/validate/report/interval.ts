/** Bootstrap intervals by prompt: rounds of one prompt are alike, so prompts are what is drawn again. */
import { CounterRng } from '../../sampling/counter-rng.ts';
import type { Ratio } from '../statistics/estimate.ts';

/** A figure with its 95 % interval; the ends are null with fewer than two prompts. */
export interface Interval {
  readonly value: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

const RESAMPLES = 1000;
const TAIL = 0.025;

/** Draws of prompts with replacement, the same for every figure: figures of one bootstrap can be compared. */
export class Bootstrap {
  readonly prompts: number;
  /** [resamples][prompts]: how often each prompt was drawn. */
  readonly #draws: readonly Uint16Array[];

  constructor(prompts: number, seed = 0) {
    this.prompts = prompts;
    const random = new CounterRng(BigInt(seed));
    this.#draws = Array.from({ length: prompts < 2 ? 0 : RESAMPLES }, (_, resample) => {
      const counts = new Uint16Array(prompts);
      for (let i = 0; i < prompts; i++) counts[Math.floor(random.uniform(resample * prompts + i) * prompts)]! += 1;
      return counts;
    });
  }

  /**
   * A statistic of weighted prompts, with the percentile interval of its resamples (Efron and Tibshirani 1993, chapter 13).
   * @param statistic of how often each prompt counts; null where it has no value
   */
  interval(statistic: (counts: ArrayLike<number>) => number | null): Interval {
    const value = statistic(new Uint16Array(this.prompts).fill(1));
    if (value === null || this.#draws.length === 0) return { value, low: null, high: null };
    const values: number[] = [];
    for (const counts of this.#draws) {
      const resampled = statistic(counts);
      if (resampled !== null) values.push(resampled);
    }
    values.sort((a, b) => a - b);
    return { value, low: quantile(values, TAIL), high: quantile(values, 1 - TAIL) };
  }

  /** A pooled ratio: sum of dividends over sum of divisors. */
  ratio(byPrompt: readonly Ratio[]): Interval {
    return this.interval((counts) => pooled(byPrompt, counts));
  }

  /** Pooled ratio of `a` less that of `b`, of the same prompts in the same order. */
  difference(a: readonly Ratio[], b: readonly Ratio[]): Interval {
    return this.interval((counts) => {
      const first = pooled(a, counts);
      const second = pooled(b, counts);
      return first === null || second === null ? null : first - second;
    });
  }

  /** Mean over prompts, those without a value left out. */
  mean(byPrompt: readonly (number | null)[]): Interval {
    return this.ratio(byPrompt.map((value) => ({ dividend: value ?? 0, divisor: value === null ? 0 : 1 })));
  }
}

function pooled(ratios: readonly Ratio[], counts: ArrayLike<number>): number | null {
  let dividend = 0;
  let divisor = 0;
  for (let i = 0; i < ratios.length; i++) {
    const count = counts[i]!;
    dividend += count * ratios[i]!.dividend;
    divisor += count * ratios[i]!.divisor;
  }
  return divisor === 0 ? null : dividend / divisor;
}

/**
 * Linear between order statistics.
 * @param sorted ascending
 * @returns null of no values
 */
export function quantile(sorted: readonly number[], share: number): number | null {
  if (sorted.length === 0) return null;
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const low = sorted[below]!;
  return low + (place - below) * (sorted[Math.min(below + 1, sorted.length - 1)]! - low);
}
