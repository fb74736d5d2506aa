/** Turns one uniform number into one draw. */

/**
 * The first index at which the cumulative sum exceeds the number: index i with probability `probabilities[i]`.
 * @param probabilities [n] at least one above 0; sum 1 up to rounding
 * @param uniform in [0, 1)
 */
export function inverseCdf(probabilities: Float64Array, uniform: number): number {
  let cumulative = 0;
  let drawn = 0;
  for (let index = 0; index < probabilities.length; index++) {
    if (probabilities[index] === 0) continue;
    drawn = index;
    cumulative += probabilities[index]!;
    if (cumulative > uniform) break;
  }
  // Rounding can leave the whole sum at or below the number: then the last index that has a probability is the one.
  return drawn;
}
