/** What drafts have been worth, by the number of sequences in the step and by sequence. */
import type { Sequence } from '../sequence.ts';
import { ofNearestCount } from './nearest-count.ts';

/** Drafts of its own that a sequence needs to count as much as what is typical. */
const TYPICAL_WEIGHT = 8;
/** Drafts that a number of sequences needs before anything is believed of it: a few unlucky ones would end drafting for long. */
const FIRST_DRAFTS = 16;
/**
 * Tokens that a sequence is believed to be better than others until it has had a few drafts of its own, as texts differ: about
 * as much as their drafts do. Where drafts are far from paying it changes nothing.
 */
const OPTIMISM = 0.1;
const OWN_FIRST_DRAFTS = 4;
/** Older drafts of a sequence fade: text changes. */
const FORGET = 0.99;
/** Share of the newest draft in what is typical, once there were many. */
const TYPICAL_RATE = 0.04;
/** Drafts that the usual length, the median, is looked for in: the few longer ones would not pay for all. */
const REACH_DRAFTS = 16;

interface Typical {
  value: number;
  drafts: number;
  readonly lengths: number[];
}

/** Of one sequence, however many were in the step. */
interface Experience {
  sum: number;
  weight: number;
  readonly lengths: number[];
}

/**
 * Values are in tokens: those that a draft was expected to add, less what its rows cost at the price of plain tokens. What
 * drafting itself costs is left out, so that a draft made for one sequence says what it is worth among many.
 */
export class DraftValue {
  readonly #typical = new Map<number, Typical>();
  readonly #experience = new WeakMap<Sequence, Experience>();

  /** Expected value of a draft for a sequence; null when too little is known yet of so many at once. */
  of(sequence: Sequence, decoding: number): number | null {
    const typical = this.#typical.get(decoding);
    if (typical === undefined || typical.drafts < FIRST_DRAFTS) return null;
    const { sum, weight } = this.#experience.get(sequence) ?? { sum: 0, weight: 0 };
    return (TYPICAL_WEIGHT * typical.value + sum) / (TYPICAL_WEIGHT + weight) + (weight < OWN_FIRST_DRAFTS ? OPTIMISM : 0);
  }

  /** Drafts of a sequence's own, the older ones faded. */
  drafts(sequence: Sequence): number {
    return this.#experience.get(sequence)?.weight ?? 0;
  }

  /** One more than was usually of use lately, which finds out when more would be; null: not known yet. */
  reach(sequence: Sequence, decoding: number): number | null {
    const own = this.#experience.get(sequence)?.lengths ?? [];
    const lengths = own.length < REACH_DRAFTS ? (ofNearestCount(this.#typical, decoding)?.lengths ?? []) : own;
    if (lengths.length < REACH_DRAFTS) return null;
    return (lengths.toSorted((a, b) => a - b)[REACH_DRAFTS / 2] as number) + 1;
  }

  /** @param length draft tokens that were worth their rows */
  learn(sequence: Sequence, decoding: number, value: number, length: number): void {
    const typical = this.#typical.get(decoding) ?? { value: 0, drafts: 0, lengths: [] };
    typical.drafts += 1;
    typical.value += Math.max(1 / typical.drafts, TYPICAL_RATE) * (value - typical.value);
    remember(typical.lengths, length);
    this.#typical.set(decoding, typical);

    const own = this.#experience.get(sequence) ?? { sum: 0, weight: 0, lengths: [] };
    own.sum = own.sum * FORGET + value;
    own.weight = own.weight * FORGET + 1;
    remember(own.lengths, length);
    this.#experience.set(sequence, own);
  }
}

function remember(lengths: number[], length: number): void {
  lengths.push(length);
  if (lengths.length > REACH_DRAFTS) lengths.shift();
}
