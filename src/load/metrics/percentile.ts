/**
 * Linear between the two order statistics around it.
 * @param sorted ascending
 * @param percent 0 to 100
 * @returns 0 of no values
 */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  if (sorted.length === 0) return 0;
  const place = (percent / 100) * (sorted.length - 1);
  const below = Math.floor(place);
  const low = sorted[below]!;
  return low + (place - below) * (sorted[Math.min(below + 1, sorted.length - 1)]! - low);
}
