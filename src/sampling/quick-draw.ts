/**
 * The draw by sums that are known to a billionth. They decide all but the rare draws that fall closer than that to a border
 * between two tokens, where the rounding of the exact sums has to decide.
 */
import type { SamplingParams } from '../core/sampling-params.ts';
import type { TokenId } from '../core/token.ts';

/**
 * Share of a total by which a sum of weights is at most wrong. A weight is right to 1e-11; adding up n of them, in any order,
 * adds n · 2^-52, which is a tenth of this for 450 000 tokens; and what lies beyond `RANGE` is less.
 */
const PRECISION = 1e-9;
/** Largest distance with a weight of its own: exp(-40) is 4e-18. */
const RANGE = 40;
/** Of a distance of 1. Between them three terms of the series of exp leave (1 / 256)^4 / 24. */
const STEPS = 256;
/** One more than the range has: what rounding moves over its end. */
const WEIGHTS = Float64Array.from({ length: RANGE * STEPS + 1 }, (_, step) => Math.exp(-step / STEPS));
/** Keeps a bound on logits from leaving out, by rounding, what is within a bound on distances. */
const WIDER = 1 + 1e-9;

/** What top-k and min-p leave. */
export interface Candidates {
  /** [vocab] */
  readonly logits: Float32Array;
  /** Largest of the logits, finite. */
  readonly largest: number;
  /** Candidates are the logits from here on. Finite. */
  readonly floor: number;
}

/** What may be drawn. */
interface Weighed {
  /** [count and more] ascending */
  readonly ids: Uint32Array;
  /** [count and more] */
  readonly weights: Float64Array;
  readonly count: number;
  /** Of the weights. */
  readonly total: number;
}

/** Memory of one draw; a draw is over before the next begins. */
let memory = { ids: new Uint32Array(0), weights: new Float64Array(0) };
/** [step] sums of weights; zero between draws. */
const masses = new Float64Array(WEIGHTS.length);

/** @returns the token that `inverseCdf` draws from the processed distribution; null where these sums do not tell */
export function quickDraw(
  candidates: Candidates,
  { temperature, topP }: Pick<SamplingParams, 'temperature' | 'topP'>,
  uniform: number,
): TokenId | null {
  const { logits, largest, floor } = candidates;
  if (memory.ids.length < logits.length) {
    memory = { ids: new Uint32Array(logits.length), weights: new Float64Array(logits.length) };
  }
  const { ids, weights } = memory;
  const hasNucleus = topP < 1;
  const lowest = Math.max(floor, largest - temperature * RANGE);
  let count = 0;
  let total = 0;
  let farthest = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    if (logit < lowest) continue;
    const steps = ((largest - logit) / temperature) * STEPS;
    const step = steps | 0;
    const rest = (steps - step) / STEPS;
    const weight = WEIGHTS[step]! * (1 - rest * (1 - rest * (1 / 2 - rest * (1 / 6))));
    ids[count] = id;
    weights[count++] = weight;
    total += weight;
    if (!hasNucleus) continue;
    masses[step]! += weight;
    if (step > farthest) farthest = step;
  }
  const weighed = { ids, weights, count, total };
  if (!hasNucleus) return idAt(weighed, uniform);
  const kept = nucleus(weighed, candidates, temperature, topP * total);
  masses.fill(0, 0, farthest + 1);
  return kept === null ? null : idAt(kept, uniform);
}

/**
 * Moves what top-p keeps to the front.
 * @param limit what the weights of the nucleus add up to at least
 * @returns null where these sums do not tell
 */
function nucleus(
  { ids, weights, count, total }: Weighed,
  { logits, largest }: Candidates,
  temperature: number,
  limit: number,
): Weighed | null {
  const slack = PRECISION * total;
  // All within the steps ahead of the border are kept for certain.
  let border = 0;
  let massBefore = 0;
  while (border < masses.length - 1 && massBefore + masses[border]! < limit - slack) massBefore += masses[border++]!;

  const lowestKept = largest - temperature * ((border + 1) / STEPS) * WIDER;
  const distance = (index: number) => (largest - logits[ids[index]!]!) / temperature;
  const onBorder: number[] = [];
  let kept = 0;
  for (let index = 0; index < count; index++) {
    if (logits[ids[index]!]! < lowestKept) continue;
    const step = (distance(index) * STEPS) | 0;
    if (step > border) continue;
    ids[kept] = ids[index]!;
    weights[kept] = weights[index]!;
    if (step === border) onBorder.push(kept);
    kept++;
  }
  onBorder.sort((left, right) => distance(left) - distance(right) || left - right);
  let rank = 0;
  while (rank < onBorder.length && (massBefore === 0 || massBefore <= limit - slack)) massBefore += weights[onBorder[rank++]!]!;
  if (massBefore < limit + slack) return null;
  for (const index of onBorder.slice(rank)) weights[index] = 0;
  return { ids, weights, count: kept, total: massBefore };
}

/** The id on whose weight this share of the total falls; null where these sums do not tell. */
function idAt({ ids, weights, count, total }: Weighed, share: number): TokenId | null {
  // What was left out for its distance may be the first.
  if (share < PRECISION) return null;
  const slack = PRECISION * total;
  const from = share * total - slack;
  let sum = 0;
  for (let index = 0; index < count; index++) {
    sum += weights[index]!;
    if (sum > from) return sum > from + 2 * slack ? ids[index]! : null;
  }
  return null;
}
