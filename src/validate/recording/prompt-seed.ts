import { createHash } from 'node:crypto';

/**
 * Seed of one prompt's answer. Draws depend on seed and position only, so prompts of one seed would be drawn alike; and it
 * follows from the id, so an answer is the same whichever others are measured beside it.
 */
export function promptSeed(seed: number, id: string): bigint {
  return createHash('sha256').update(`${seed} ${id}`).digest().readBigUInt64LE();
}
