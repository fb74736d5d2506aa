/**
 * How many draft tokens a round keeps, by given rates in place of what the target says: for capacity tests, where load
 * matters and text does not. The rates are those that vLLM calls `synthetic_acceptance_rates` and `_length`.
 */
import { AppError } from '../../core/app-error.ts';
import type { Position } from '../../core/token.ts';
import { CounterRng } from '../../sampling/counter-rng.ts';

/** Apart from the draws that choose tokens. */
const STREAM = 0x53594e;

export interface SyntheticAcceptance {
  /** By place in a draft: the share of rounds in which the draft token there, and so all before it, is kept. */
  readonly rates: readonly number[];
  /**
   * Leading tokens of a draft that are kept; the same for the same seed and position.
   * @param drafted tokens of the draft
   * @param position of the anchor
   */
  accepted(drafted: number, seed: bigint, position: Position): number;
}

/** @throws AppError `invalid_config` when a rate is no share, or larger than the one before it */
export function acceptanceByRates(rates: readonly number[]): SyntheticAcceptance {
  const isShare = (rate: number) => rate >= 0 && rate <= 1;
  const isFalling = rates.every((rate, i) => i === 0 || rate <= (rates[i - 1] as number));
  if (rates.length === 0 || !rates.every(isShare) || !isFalling) {
    throw new AppError(
      'invalid_config',
      `Expected acceptance rates from 0 to 1, none larger than the one before it, got ${rates.join(',') || 'none'}; ` +
        'a token is kept only where all before it are',
    );
  }
  return {
    rates,
    accepted(drafted, seed, position) {
      // One draw a round: a place is kept where its rate is above it, and with it all before.
      const draw = new CounterRng(seed).uniform(position, STREAM);
      const refused = rates.findIndex((rate) => rate <= draw);
      return Math.min(refused < 0 ? rates.length : refused, drafted);
    },
  };
}

/**
 * Rates that fall by the same factor from place to place.
 * @param length tokens that a round emits on average, the target's own included
 * @throws AppError `invalid_config` when drafts of that many tokens cannot have it
 */
export function acceptanceByLength(length: number, draftTokens: number): SyntheticAcceptance {
  if (!(length >= 1 && length <= draftTokens + 1)) {
    throw new AppError(
      'invalid_config',
      `Expected an acceptance length of 1 to ${draftTokens + 1} for drafts of ${draftTokens} tokens, got ${length}`,
    );
  }
  const ratesFor = (factor: number) => Array.from({ length: draftTokens }, (_, i) => factor ** (i + 1));
  const lengthOf = (factor: number) => ratesFor(factor).reduce((sum, rate) => sum + rate, 1);
  let [low, high] = [0, 1];
  const HALVINGS = 50;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (lengthOf(middle) < length) low = middle;
    else high = middle;
  }
  return acceptanceByRates(ratesFor(high));
}
