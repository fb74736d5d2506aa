/**
 * Adjusts p-values for the number of questions asked (Holm 1979).
 * @param pValues of all tests, in any order
 * @returns in the same order; one below 0.05 is significant at a family-wise error rate of 5 %
 */
export function holmAdjusted(pValues: readonly number[]): readonly number[] {
  const order = pValues.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p);
  const adjusted = new Array<number>(pValues.length).fill(1);
  let largest = 0;
  for (const [rank, { p, index }] of order.entries()) {
    largest = Math.max(largest, Math.min((pValues.length - rank) * p, 1));
    adjusted[index] = largest;
  }
  return adjusted;
}
