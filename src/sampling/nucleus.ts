/** Which candidates top-p keeps (nucleus sampling: Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020). */

const BUCKETS = 2048;
/** e^-64 of the largest weight: candidates further down share one bucket, for the sum of all of them is below double precision. */
const LARGEST_DISTANCE = 64;
/** Keeps the scale finite when all weights are equal. */
const SMALLEST_DISTANCE = 1e-9;

/**
 * Marks the nucleus: ranked by weight, the smaller index first among equals, a candidate is kept while the mass before it is
 * below `topP` of the total; the first is always kept.
 *
 * Buckets by rank find the place of the border in O(n); only the bucket on the border is sorted.
 * @param distances [n] natural logarithm of the largest weight over this one, at least 0 and finite
 * @param weights [n] exp(-distance)
 * @returns [n] 1 where kept
 */
export function nucleus(distances: Float64Array, weights: Float64Array, topP: number): Uint8Array {
  const { bucketOf, masses, total } = histogram(distances, weights);
  const limit = topP * total;
  let border = 0;
  let massBefore = 0;
  while (border < BUCKETS - 1 && massBefore + masses[border]! < limit) {
    massBefore += masses[border]!;
    border++;
  }

  const kept = new Uint8Array(weights.length);
  const onBorder: number[] = [];
  for (let index = 0; index < weights.length; index++) {
    if (bucketOf[index]! < border) kept[index] = 1;
    else if (bucketOf[index] === border) onBorder.push(index);
  }
  onBorder.sort((left, right) => distances[left]! - distances[right]! || left - right);
  for (const index of onBorder) {
    if (massBefore > 0 && massBefore >= limit) break;
    kept[index] = 1;
    massBefore += weights[index]!;
  }
  return kept;
}

function histogram(distances: Float64Array, weights: Float64Array) {
  let largest = 0;
  for (let index = 0; index < distances.length; index++) if (distances[index]! > largest) largest = distances[index]!;
  const scale = BUCKETS / Math.min(Math.max(largest, SMALLEST_DISTANCE), LARGEST_DISTANCE);

  const masses = new Float64Array(BUCKETS);
  const bucketOf = new Uint16Array(distances.length);
  let total = 0;
  for (let index = 0; index < distances.length; index++) {
    const bucket = Math.min(BUCKETS - 1, Math.floor(distances[index]! * scale));
    bucketOf[index] = bucket;
    masses[bucket]! += weights[index]!;
    total += weights[index]!;
  }
  return { bucketOf, masses, total };
}
