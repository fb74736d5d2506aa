/** What scripted targets say. */
import type { SamplingParams } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import { sampleToken } from '../../src/sampling/sample-token.ts';
import type { NextLogits } from './scripted-target.ts';

export interface HashedLogitsOptions {
  readonly vocabSize: number;
  readonly seed: number;
  /** Latest tokens that matter; few of them make a text that repeats itself. */
  readonly memory: number;
}

/** Logits between -3 and 3 that look random, and are the same for the same latest tokens. */
export function hashedLogits({ vocabSize, seed, memory }: HashedLogitsOptions): NextLogits {
  return (prefix) => {
    const hash = prefix.slice(-memory).reduce(mix, mix(seed, vocabSize));
    return Float32Array.from({ length: vocabSize }, (_, id) => (mix(hash, id) / 2 ** 32) * 6 - 3);
  };
}

/**
 * Answers each prompt with its answer, and goes on with `filler` behind it. Where no prompt begins the sequence, all is filler.
 * @param answers pairs of prompt and answer
 */
export function scriptedAnswers(
  vocabSize: number,
  answers: readonly (readonly [prompt: readonly TokenId[], answer: readonly TokenId[]])[],
  filler: TokenId,
): NextLogits {
  return (prefix) => {
    const found = answers.find(([prompt]) => prompt.every((token, i) => prefix[i] === token));
    const token = found === undefined ? filler : (found[1][prefix.length - found[0].length] ?? filler);
    const logits = new Float32Array(vocabSize);
    logits[token] = 1;
    return logits;
  };
}

/** The token that plain decoding puts behind a prefix. */
export function nextToken(nextLogits: NextLogits, sampling: SamplingParams): (prefix: readonly TokenId[]) => TokenId {
  return (prefix) => sampleToken(nextLogits(prefix), sampling, prefix.length);
}

/** Murmur3's rounds, as an unsigned integer of 32 bits. */
function mix(state: number, value: number): number {
  let hash = Math.imul(state ^ Math.imul(value + 1, 0xcc9e2d51), 0x1b873593);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
