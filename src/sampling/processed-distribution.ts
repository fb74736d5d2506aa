/** The target's next-token distribution after temperature, min-p, top-k and top-p, in vLLM's order. */
import { AppError } from '../core/app-error.ts';
import type { SamplingParams } from '../core/sampling-params.ts';
import type { TokenId } from '../core/token.ts';
import { argmax } from './argmax.ts';
import { kthLargest } from './kth-largest.ts';
import { nucleus } from './nucleus.ts';
import type { Candidates } from './quick-draw.ts';

/** The tokens that may be drawn; all others have probability 0. */
export interface TokenDistribution {
  /** [candidates] ascending: a tiny change of the logits then moves no token far in the cumulative sum. */
  readonly ids: Uint32Array;
  /** [candidates] sum 1 */
  readonly probabilities: Float64Array;
}

/**
 * softmax(logits / temperature), cut in vLLM's order:
 * 1. min-p keeps a token with at least `minP` times the largest probability;
 * 2. top-k keeps every logit that is not below the k-th largest, ties included;
 * 3. top-p, on what is left and renormalised, keeps a token while the mass before it is below `topP`, at least one.
 *
 * transformers has min-p last; both orders agree unless min-p and another cut are used together.
 * @param logits [vocab]; -Infinity masks a token
 * @param params temperature above 0, without limits on the other fields beyond their definition
 * @throws AppError `internal` when the logits have NaN or +Infinity, or nothing above -Infinity
 */
export function processedDistribution(logits: Float32Array, params: Omit<SamplingParams, 'seed'>): TokenDistribution {
  const { ids, distances, weights } = weighed(candidates(logits, params), params.temperature);
  if (params.topP >= 1) return normalized(ids, weights);
  return normalized(...select(nucleus(distances, weights, params.topP), ids, weights));
}

/**
 * What min-p and top-k leave.
 * @throws AppError as `processedDistribution`
 */
export function candidates(
  logits: Float32Array,
  { temperature, topK, minP }: Pick<SamplingParams, 'temperature' | 'topK' | 'minP'>,
): Candidates {
  const largest = logits[argmax(logits)]!;
  if (largest === Number.POSITIVE_INFINITY) {
    throw new AppError('internal', 'expected finite logits, got +Infinity; check the weights and their dtype');
  }
  const minPFloor = minP > 0 ? largest + temperature * Math.log(minP) : Number.NEGATIVE_INFINITY;
  const topKFloor = topK > 0 && topK < logits.length ? kthLargest(logits, topK) : Number.NEGATIVE_INFINITY;
  return { logits, largest, floor: Math.max(minPFloor, topKFloor, -Number.MAX_VALUE) };
}

/** Candidates with their distances (largest - logit) / temperature and weights exp(-distance). */
function weighed({ logits, largest, floor }: Candidates, temperature: number) {
  let count = 0;
  for (let id = 0; id < logits.length; id++) if (logits[id]! >= floor) count++;
  const ids = new Uint32Array(count);
  const distances = new Float64Array(count);
  const weights = new Float64Array(count);
  for (let id: TokenId = 0, index = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (logit < floor) continue;
    const distance = (largest - logit) / temperature;
    ids[index] = id;
    distances[index] = distance;
    weights[index++] = Math.exp(-distance);
  }
  return { ids, distances, weights };
}

function select(kept: Uint8Array, ids: Uint32Array, weights: Float64Array): [Uint32Array, Float64Array] {
  let count = 0;
  for (let index = 0; index < kept.length; index++) count += kept[index]!;
  const keptIds = new Uint32Array(count);
  const keptWeights = new Float64Array(count);
  for (let index = 0, slot = 0; index < kept.length; index++) {
    if (kept[index] === 0) continue;
    keptIds[slot] = ids[index]!;
    keptWeights[slot++] = weights[index]!;
  }
  return [keptIds, keptWeights];
}

/** Divides the weights by their sum, in place. */
function normalized(ids: Uint32Array, weights: Float64Array): TokenDistribution {
  let total = 0;
  for (let index = 0; index < weights.length; index++) total += weights[index]!;
  for (let index = 0; index < weights.length; index++) weights[index]! /= total;
  return { ids, probabilities: weights };
}
