/** The largest difference, as a share of the largest magnitude that was expected. */
export function largestError(actual: Float32Array, expected: Float32Array): number {
  if (actual.length !== expected.length) throw new Error(`Expected ${expected.length} numbers, got ${actual.length}`);
  let difference = 0;
  let magnitude = 0;
  for (let i = 0; i < expected.length; i++) {
    const off = Math.abs(actual[i]! - expected[i]!);
    // A NaN is not larger than anything, and must not pass for 0.
    if (!(off <= difference)) difference = off;
    magnitude = Math.max(magnitude, Math.abs(expected[i]!));
  }
  return difference / magnitude;
}
