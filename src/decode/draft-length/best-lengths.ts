/** How much of each draft is worth verifying. */

/**
 * Chooses the lengths that are expected to gain most, jointly over the sequences of a step: tokens, less those that the
 * time of their rows would give elsewhere.
 *
 * The price of time is what it gives without drafts, so a step with poor drafts does not verify them for want of better, and
 * what drafting has cost by now changes nothing.
 *
 * A draft token adds its survival (the probability that it and all before it are accepted) to the expected tokens, and a
 * row to the step. Survivals fall along a draft, so taking tokens in the order of their survival takes prefixes; one pass
 * over that order finds the best set of any size.
 * @param survivals for each sequence, by slot, not increasing
 * @param tokensPerMs what time gives elsewhere
 * @param stepMs cost of a step by its rows
 * @returns draft tokens to verify, by sequence
 */
export function bestLengths(
  survivals: readonly (readonly number[])[],
  tokensPerMs: number,
  stepMs: (rows: number) => number,
): number[] {
  const sequences = survivals.length;
  const slots = survivals.flatMap((own, sequence) => own.map((survival) => ({ sequence, survival })));
  // Stable: among equals the earlier slot of a draft stays before the later one.
  slots.sort((a, b) => b.survival - a.survival);
  let expected = 0;
  let best = { taken: 0, tokens: 0, ms: stepMs(sequences) };
  for (const [index, { survival }] of slots.entries()) {
    expected += survival;
    const ms = stepMs(sequences + index + 1);
    if (expected - ms * tokensPerMs > best.tokens - best.ms * tokensPerMs) best = { taken: index + 1, tokens: expected, ms };
  }
  const lengths = new Array<number>(sequences).fill(0);
  for (const { sequence } of slots.slice(0, best.taken)) lengths[sequence] = (lengths[sequence] as number) + 1;
  return lengths;
}
