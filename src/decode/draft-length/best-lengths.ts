/** How much of each draft is worth verifying. */

export interface LengthChoice {
  /** Draft tokens to verify, by sequence. */
  readonly lengths: readonly number[];
  /** Tokens that the step is expected to emit, all sequences together. */
  readonly expectedTokens: number;
  /** Milliseconds that it is expected to take. */
  readonly expectedMs: number;
}

/**
 * Chooses the lengths with the most expected tokens per millisecond, jointly over the sequences of a step.
 *
 * A draft token adds its survival (the probability that it and all before it are accepted) to the expected tokens, and a
 * row to the step. Survivals fall along a draft, so taking tokens in the order of their survival takes prefixes; one pass
 * over that order finds the best set of any size.
 * @param survivals for each sequence, by slot, not increasing
 * @param spentMs already spent on drafting: it belongs to the price, whatever is chosen
 * @param stepMs cost of a step by its rows
 */
export function bestLengths(
  survivals: readonly (readonly number[])[],
  spentMs: number,
  stepMs: (rows: number) => number,
): LengthChoice {
  const sequences = survivals.length;
  const slots = survivals.flatMap((own, sequence) => own.map((survival) => ({ sequence, survival })));
  // Stable: among equals the earlier slot of a draft stays before the later one.
  slots.sort((a, b) => b.survival - a.survival);
  let expected = sequences;
  let best = { taken: 0, tokens: expected, ms: spentMs + stepMs(sequences) };
  for (const [index, { survival }] of slots.entries()) {
    expected += survival;
    const ms = spentMs + stepMs(sequences + index + 1);
    if (expected / ms > best.tokens / best.ms) best = { taken: index + 1, tokens: expected, ms };
  }
  const lengths = new Array<number>(sequences).fill(0);
  for (const { sequence } of slots.slice(0, best.taken)) lengths[sequence] = (lengths[sequence] as number) + 1;
  return { lengths, expectedTokens: best.tokens, expectedMs: best.ms };
}
