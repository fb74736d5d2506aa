/** How often matches of a kind were right about the next token, counted on the sequence itself. */

/** What is known of a prediction before it is checked. */
export interface Prediction {
  /** Tokens that the match is long. */
  readonly length: number;
  /** Share of the occurrences that agree on the token. */
  readonly share: number;
}

/** Index of a count in {@link MatchCalibration}. */
export type PredictionKind = number;

/** Weight of what is believed beforehand, in observations. */
const PRIOR_COUNT = 4;
/** Shares are told apart as all, most, and fewer of the occurrences. */
const SHARE_LEVELS = 3;

export class MatchCalibration {
  readonly #tries: Uint32Array;
  readonly #hits: Uint32Array;
  readonly #maxMatch: number;

  /** @param maxMatch longer matches count as matches of this length */
  constructor(maxMatch: number) {
    this.#maxMatch = maxMatch;
    this.#tries = new Uint32Array((maxMatch + 1) * SHARE_LEVELS);
    this.#hits = new Uint32Array((maxMatch + 1) * SHARE_LEVELS);
  }

  kindOf({ length, share }: Prediction): PredictionKind {
    const level = share === 1 ? 0 : share > 0.5 ? 1 : 2;
    return Math.min(length, this.#maxMatch) * SHARE_LEVELS + level;
  }

  /** @param sign -1 takes back what was counted */
  count(kind: PredictionKind, hit: boolean, sign: 1 | -1): void {
    this.#tries[kind]! += sign;
    if (hit) this.#hits[kind]! += sign;
  }

  /** The probability that the foretold token comes. */
  probability(prediction: Prediction): number {
    const kind = this.kindOf(prediction);
    // The longer a match, the surer what follows: it went on so far as well.
    const { length, share } = prediction;
    const prior = ((length + 1) / (length + 2)) * share;
    return (this.#hits[kind]! + PRIOR_COUNT * prior) / (this.#tries[kind]! + PRIOR_COUNT);
  }
}
