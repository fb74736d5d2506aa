import { randomInt } from 'node:crypto';

const MASK_64 = (1n << 64n) - 1n;
/** SplitMix64's increment and multipliers (Steele, Lea, Flood 2014): neighbouring inputs give unrelated outputs. */
const GOLDEN_GAMMA = 0x9e3779b97f4a7c15n;
const MIX_1 = 0xbf58476d1ce4e5b9n;
const MIX_2 = 0x94d049bb133111ebn;

/** A seed for a request that names none. */
export function randomSeed(): number {
  return randomInt(2 ** 48 - 1);
}

/**
 * The seed of one choice. Choice 0 keeps the request's own, so that asking for more choices does not change the
 * first; the others are mixed from both numbers and stay below 2^53, so that each can be sent as a seed of its own.
 */
export function choiceSeed(seed: number, choice: number): bigint {
  if (choice === 0) return BigInt.asUintN(64, BigInt(seed));
  let mixed = (BigInt(seed) + BigInt(choice) * GOLDEN_GAMMA) & MASK_64;
  mixed = ((mixed ^ (mixed >> 30n)) * MIX_1) & MASK_64;
  mixed = ((mixed ^ (mixed >> 27n)) * MIX_2) & MASK_64;
  return (mixed ^ (mixed >> 31n)) >> 11n;
}
