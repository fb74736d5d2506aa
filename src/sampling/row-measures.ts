/** What a row of logits says of single tokens. */
import type { TokenId } from '../core/token.ts';

/** log Σ exp(logit / temperature). */
export function logPartition(logits: Float32Array, temperature = 1): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (let id = 0; id < logits.length; id++) if (logits[id]! > largest) largest = logits[id]!;
  let sum = 0;
  for (let id = 0; id < logits.length; id++) sum += Math.exp((logits[id]! - largest) / temperature);
  return largest / temperature + Math.log(sum);
}

/** How many tokens come before this one: larger logits, and among equals smaller ids. 0 is the greedy choice. */
export function rankOf(logits: Float32Array, token: TokenId): number {
  const own = logits[token]!;
  let rank = 0;
  for (let id = 0; id < logits.length; id++) {
    if (logits[id]! > own || (logits[id] === own && id < token)) rank++;
  }
  return rank;
}

/** Indices of the largest values, largest first, the smaller index first among equals; fewer when there are fewer. */
export function largestIndices(values: Float32Array, count: number): number[] {
  const kept: number[] = [];
  for (let id = 0; id < values.length; id++) {
    const value = values[id]!;
    if (kept.length === count && value <= values[kept[count - 1]!]!) continue;
    let place = kept.length;
    while (place > 0 && value > values[kept[place - 1]!]!) place--;
    kept.splice(place, 0, id);
    if (kept.length > count) kept.pop();
  }
  return kept;
}

/**
 * Σ min(p, q) = 1 - total variation distance: the acceptance probability of a draft token drawn from p where q is the
 * target's distribution (Leviathan, Kalman and Matias 2023, corollary 3.6).
 * @param draft [rows]
 * @param tokens target id of each row of `draft`; null: rows are target ids
 * @param target [vocab]
 */
export function overlap(
  draft: { readonly logits: Float32Array; readonly logPartition: number },
  tokens: ArrayLike<TokenId> | null,
  target: { readonly logits: Float32Array; readonly logPartition: number; readonly temperature: number },
): number {
  let sum = 0;
  for (let row = 0; row < draft.logits.length; row++) {
    const token = tokens === null ? row : tokens[row]!;
    const q = target.logits[token]! / target.temperature - target.logPartition;
    sum += Math.exp(Math.min(draft.logits[row]! - draft.logPartition, q));
  }
  return Math.min(sum, 1);
}
