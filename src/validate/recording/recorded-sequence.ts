import type { TokenId } from '../../core/token.ts';

/** One prompt with the target's own answer, and what the target computed for it. */
export interface RecordedSequence {
  readonly id: string;
  readonly category: string;
  /** Prompt and answer. */
  readonly tokens: readonly TokenId[];
  /** Position of the answer's first token. */
  readonly answerStart: number;
  /** Residual stream after each layer, by layer; [tokens - 1, hidden] each, or more rows: the last token is never an input. */
  readonly layers: readonly Float32Array[];
}

/** Rows of the recorded streams. */
export function recordedRows(sequence: RecordedSequence): number {
  return sequence.tokens.length - 1;
}

/** The same with an answer of so many tokens at most. The streams are shared and keep all their rows. */
export function shortened(sequence: RecordedSequence, answerTokens: number): RecordedSequence {
  const length = sequence.answerStart + answerTokens;
  return length >= sequence.tokens.length ? sequence : { ...sequence, tokens: sequence.tokens.slice(0, length) };
}
