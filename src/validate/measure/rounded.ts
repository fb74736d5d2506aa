const DIGITS = 5;

/** A probability as it is kept: rounding errors beyond 0 and 1 are cut off. */
export function rounded(probability: number): number {
  return Math.min(Math.max(Number(probability.toPrecision(DIGITS)), 0), 1);
}
