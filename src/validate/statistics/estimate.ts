/** Estimates from clustered data: anchors of one prompt are alike, so prompts are what is counted. */
import { criticalValue, upperTail } from './student-t.ts';

export interface Estimate {
  readonly value: number;
  readonly standardError: number;
  /** 95 % interval. */
  readonly low: number;
  readonly high: number;
  /** Probability of a value so large if the true one were 0 or less (one-sided). */
  readonly p: number;
  readonly clusters: number;
}

/**
 * @param value of the statistic over all clusters
 * @param influences by cluster: how much each moves the value, to first order; they sum to about 0
 */
export function estimateFromInfluences(value: number, influences: readonly number[]): Estimate {
  const clusters = influences.length;
  if (clusters < 2) return { value, standardError: Number.NaN, low: Number.NaN, high: Number.NaN, p: 1, clusters };
  const squares = influences.reduce((sum, influence) => sum + influence * influence, 0);
  const standardError = Math.sqrt((squares * clusters) / (clusters - 1));
  const half = criticalValue(0.025, clusters - 1) * standardError;
  // Differences that are the same in every cluster have no spread to judge them by; none at all are no evidence.
  const p = standardError > 0 ? upperTail(value / standardError, clusters - 1) : value > 0 ? 0 : 1;
  return { value, standardError, low: value - half, high: value + half, p, clusters };
}

/** Sums of a cluster. */
export interface Ratio {
  readonly dividend: number;
  readonly divisor: number;
}

function total(ratios: readonly Ratio[]): Ratio {
  return {
    dividend: ratios.reduce((sum, { dividend }) => sum + dividend, 0),
    divisor: ratios.reduce((sum, { divisor }) => sum + divisor, 0),
  };
}

function influences(ratios: readonly Ratio[]): { readonly value: number; readonly influences: readonly number[] } {
  const { dividend, divisor } = total(ratios);
  if (divisor === 0) return { value: Number.NaN, influences: ratios.map(() => 0) };
  const value = dividend / divisor;
  return { value, influences: ratios.map((ratio) => (ratio.dividend - value * ratio.divisor) / divisor) };
}

/** A pooled ratio, e.g. tokens per round: sum of dividends over sum of divisors (Cochran 1977, section 6.4). */
export function ratioEstimate(ratios: readonly Ratio[]): Estimate {
  const { value, influences: moves } = influences(ratios);
  return estimateFromInfluences(value, moves);
}

/** Pooled ratio of `a` less that of `b`, both of the same clusters in the same order. */
export function pairedRatioDifference(a: readonly Ratio[], b: readonly Ratio[]): Estimate {
  const first = influences(a);
  const second = influences(b);
  return estimateFromInfluences(
    first.value - second.value,
    first.influences.map((influence, i) => influence - (second.influences[i] ?? 0)),
  );
}

/** Pooled ratio of `a` less that of `b`, which are different clusters. */
export function unpairedRatioDifference(a: readonly Ratio[], b: readonly Ratio[]): Estimate {
  const first = influences(a);
  const second = influences(b);
  return estimateFromInfluences(first.value - second.value, [
    ...first.influences,
    ...second.influences.map((influence) => -influence),
  ]);
}

/** A smooth function of pooled ratios, by leaving out one cluster at a time (Efron and Stein 1981). */
export function jackknifeEstimate<Cluster>(
  clusters: readonly Cluster[],
  statistic: (clusters: readonly Cluster[]) => number,
): Estimate {
  const value = statistic(clusters);
  const count = clusters.length;
  const without = clusters.map((_, left) => statistic(clusters.filter((_, i) => i !== left)));
  const mean = without.reduce((sum, x) => sum + x, 0) / count;
  return estimateFromInfluences(
    value,
    without.map((x) => ((count - 1) / count) * (mean - x)),
  );
}
