/** What drafts were like lately, of each sequence and of all: what the next one will be worth. */
import type { Sequence } from '../sequence.ts';

/** Drafts before anything is believed: a few unlucky ones would end drafting for long. */
const FIRST_DRAFTS = 16;
/**
 * Tokens that a sequence is believed to be better than others until it has had a few drafts of its own, as texts differ: about
 * as much as their drafts do. Where drafts are far from paying it changes nothing.
 */
const OPTIMISM = 0.1;
const OWN_FIRST_DRAFTS = 4;
/** Drafts that are remembered of all sequences, and of one: text changes. */
const TYPICAL_DRAFTS = 32;
const OWN_DRAFTS = 24;
/** Drafts that the usual length, the median, is looked for in: the few longer ones would not pay for all. */
const REACH_DRAFTS = 16;

/** Probability that each draft token and all before it are accepted. */
type Survivals = readonly number[];

export interface Expectation {
  /** Tokens that a draft is expected to add, less what its rows cost. */
  readonly value: number;
  /** Draft tokens that are of use: one more than usually were lately, which finds out when more would be. */
  readonly reach: () => number;
}

/**
 * Drafts are remembered as they were, and not what they were worth: that depends on the price of rows, and so on how many sequences
 * there are. What is learned with few of them serves when there are many, and the other way round. What drafting itself
 * costs is left out.
 */
export class DraftHistory {
  readonly #all: Survivals[] = [];
  readonly #own = new WeakMap<Sequence, Survivals[]>();

  add(sequence: Sequence, survivals: Survivals): void {
    const own = this.#own.get(sequence) ?? [];
    remember(this.#all, survivals, TYPICAL_DRAFTS);
    remember(own, survivals, OWN_DRAFTS);
    this.#own.set(sequence, own);
  }

  /** Drafts of a sequence's own that are remembered. */
  drafts(sequence: Sequence): number {
    return this.#own.get(sequence)?.length ?? 0;
  }

  /**
   * For the sequences of a step.
   * @param prices of the first row of a draft, of the first two, and so on, in tokens; as many as a draft may have
   * @returns null when too little is known yet
   */
  forecast(prices: readonly number[]): ((sequence: Sequence) => Expectation) | null {
    if (this.#all.length < FIRST_DRAFTS) return null;
    const typical = totalWorth(this.#all, prices) / this.#all.length;
    return (sequence) => {
      const own = this.#own.get(sequence) ?? [];
      // A sequence begins with typical drafts, which its own replace one by one.
      const value = ((OWN_DRAFTS - own.length) * typical + totalWorth(own, prices)) / OWN_DRAFTS;
      return {
        value: value + (own.length < OWN_FIRST_DRAFTS ? OPTIMISM : 0),
        reach: () => usualLength(own.length < REACH_DRAFTS ? this.#all : own, prices) + 1,
      };
    };
  }
}

function totalWorth(drafts: readonly Survivals[], prices: readonly number[]): number {
  return drafts.reduce((total, survivals) => total + bestBeginning(survivals, prices).value, 0);
}

function usualLength(drafts: readonly Survivals[], prices: readonly number[]): number {
  const lengths = drafts.slice(-REACH_DRAFTS).map((survivals) => bestBeginning(survivals, prices).length);
  return lengths.toSorted((a, b) => a - b)[REACH_DRAFTS / 2] as number;
}

/** The beginning of a draft that is worth most: tokens that it is expected to add, less what its rows cost. */
function bestBeginning(survivals: Survivals, prices: readonly number[]): { readonly value: number; readonly length: number } {
  let expected = 0;
  let value = 0;
  let length = 0;
  for (let slot = 0; slot < survivals.length && slot < prices.length; slot++) {
    expected += survivals[slot]!;
    if (expected - prices[slot]! <= value) continue;
    value = expected - prices[slot]!;
    length = slot + 1;
  }
  return { value, length };
}

function remember(drafts: Survivals[], survivals: Survivals, most: number): void {
  drafts.push(survivals);
  if (drafts.length > most) drafts.shift();
}
