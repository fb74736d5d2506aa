/** PORT of the decoder that a draft model runs on. Whoever composes drafters and targets supplies it; a target is one. */
import type { TokenId } from '../../core/token.ts';

/** What is kept of one sequence, for positions 0 to `length` - 1. */
export interface DecoderCache extends Disposable {
  readonly length: number;
  /** Positions it can hold. */
  readonly capacity: number;
  /** Forgets the positions from `length` on. */
  truncate(length: number): void;
  /** Becomes what the decoder would make of the first `length` tokens of another of its caches. This one must be empty. */
  copyFrom(source: DecoderCache, length: number): void;
}

/** Consecutive tokens of one sequence, to be appended to its cache. */
export interface DecoderSpan {
  readonly cache: DecoderCache;
  readonly tokens: readonly TokenId[];
  /** Logits are computed for `tokens[logitsFrom]` and all after it; `tokens.length` for none. */
  readonly logitsFrom: number;
}

export interface DraftDecoder extends AsyncDisposable {
  /** Sequences that one step can serve. */
  readonly maxSequences: number;
  /** Tokens that one step can take, over all sequences. */
  readonly maxRows: number;
  /** Bytes of one cached position. */
  readonly cacheBytesPerPosition: number;
  /** Present when layers keep a state that cannot be cut back to any length. */
  readonly recurrent?: unknown;
  /** At least as many can be open as sequences run and are kept. */
  openCache(): DecoderCache;
  /** Appends each span to its cache. When it fails, or is aborted, the caches are as before. */
  step(spans: readonly DecoderSpan[], signal?: AbortSignal): Promise<DecoderStep>;
  /** Loads what several sequences at once need. */
  warmUp(): Promise<void>;
}

/** What a step computed; valid until the next one. */
export interface DecoderStep {
  /** Logits after `tokens[row]` of a span; [vocab]. */
  logits(span: number, row: number): Float32Array;
}
