/**
 * Random numbers by counter: any draw can be made again from its key and its counter alone, so there is no state to rewind
 * when drafts are discarded. Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
 */
import type { Position } from '../core/token.ts';

const MULTIPLIER_0 = 0xd2511f53;
const MULTIPLIER_1 = 0xcd9e8d57;
const WEYL_0 = 0x9e3779b9;
const WEYL_1 = 0xbb67ae85;
const ROUNDS = 10;
const TWO_32 = 2 ** 32;
const TWO_NEGATIVE_53 = 2 ** -53;

/** High 32 bits of the product of two uint32, as int32. */
function multiplyHigh(left: number, right: number): number {
  const leftLow = left & 0xffff;
  const leftHigh = left >>> 16;
  const rightLow = right & 0xffff;
  const rightHigh = right >>> 16;
  const low = leftLow * rightLow;
  const middle = leftHigh * rightLow + (low >>> 16);
  const carry = leftLow * rightHigh + (middle % 0x10000);
  return (leftHigh * rightHigh + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000)) | 0;
}

/** Four uint32 words. */
export type PhiloxBlock = readonly [number, number, number, number];

/**
 * One block of Philox4x32-10.
 * @param counter four uint32 words, the least significant first
 * @param key two uint32 words, the least significant first
 */
export function philox4x32(counter: PhiloxBlock, key: readonly [number, number]): PhiloxBlock {
  let [word0, word1, word2, word3] = counter;
  let [key0, key1] = key;
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIER_0, word0);
    const low0 = Math.imul(MULTIPLIER_0, word0);
    const high1 = multiplyHigh(MULTIPLIER_1, word2);
    const low1 = Math.imul(MULTIPLIER_1, word2);
    word0 = high1 ^ word1 ^ key0;
    word1 = low1;
    word2 = high0 ^ word3 ^ key1;
    word3 = low0;
    key0 = (key0 + WEYL_0) | 0;
    key1 = (key1 + WEYL_1) | 0;
  }
  return [word0 >>> 0, word1 >>> 0, word2 >>> 0, word3 >>> 0];
}

/** The generator of one seed. Stateless: the same position and stream give the same number at any time. */
export class CounterRng {
  readonly #key: readonly [number, number];

  /** @param seed the low 64 bits are the key; a negative seed is taken modulo 2^64 */
  constructor(seed: bigint) {
    this.#key = [Number(BigInt.asUintN(32, seed)), Number(BigInt.asUintN(32, seed >> 32n))];
  }

  /**
   * A uniform number in [0, 1) with 53 random bits.
   * @param position 0-based, below 2^53
   * @param stream uint32 that separates independent uses at one position
   */
  uniform(position: Position, stream = 0): number {
    const [high, low] = philox4x32([position >>> 0, Math.floor(position / TWO_32) >>> 0, stream >>> 0, 0], this.#key);
    return ((high >>> 5) * 2 ** 26 + (low >>> 6)) * TWO_NEGATIVE_53;
  }
}
