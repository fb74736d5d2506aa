/** PORT of a target model: one step over rows of several sequences, with caches that can be cut back. */
import type { TokenId } from '../core/token.ts';
import type { OwnedTensor } from '../onnx/tensor.ts';

export interface TargetFacts {
  /** `model_type` of its config. */
  readonly family: string;
  /** Rows of the embedding table and of the head. */
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  /** Positions a sequence may have. */
  readonly maxContext: number;
  /** Any of them ends an answer. */
  readonly eosTokenIds: readonly TokenId[];
}

/** What a target keeps of one sequence, for positions 0 to `length` - 1. */
export interface SequenceCache extends Disposable {
  readonly length: number;
  /** Positions it can hold. */
  readonly capacity: number;
  /**
   * Forgets the positions from `length` on; what follows is computed as if they had never been.
   * A recurrent target knows no states but the last ones. Its caches can be cut back within the rows of the last step
   * that had logits, or to where that step began, before the target's next step; and to 0 at any time.
   * @throws StateNotKeptError for another length of a recurrent target's cache
   */
  truncate(length: number): void;
  /**
   * Becomes what the target would make of the first `length` tokens of another of its caches. This one must be empty.
   * @throws StateNotKeptError when the target is recurrent and `length` is not all that the other holds, or the other was
   *   cut back since its last step
   */
  copyFrom(source: SequenceCache, length: number): void;
}

export interface RecurrentFacts {
  /** Bytes that a cache takes however long its sequence is. */
  readonly bytesPerSequence: number;
}

/** Consecutive tokens of one sequence, to be appended to its cache. */
export interface StepSpan {
  readonly cache: SequenceCache;
  /** At least one; the first has position `cache.length`. */
  readonly tokens: readonly TokenId[];
  /** Logits are computed for `tokens[logitsFrom]` and all after it; `tokens.length` for none. */
  readonly logitsFrom: number;
}

/** What a step computed. Everything in it is valid until the next step. */
export interface StepResult {
  /** The token with the largest logit, the smaller id among equals, after `tokens[row]` of a span. */
  greedy(span: number, row: number): TokenId;
  /** Logits after `tokens[row]` of a span; [vocab]. */
  logits(span: number, row: number): Float32Array;
  /**
   * Residual stream after the tapped layers, by layer; [all rows of the step, hidden] each. Before the first layer it is
   * tap -1, and behind the final norm it is the tap of the number of layers.
   */
  readonly taps: ReadonlyMap<number, OwnedTensor<'f32'>>;
  /** Where a span's first token stands among all rows of the step. */
  firstRow(span: number): number;
}

export interface Target extends AsyncDisposable {
  readonly facts: TargetFacts;
  /** Sequences that one step can serve. Falls when what a step of so many needs cannot be loaded. */
  readonly maxSequences: number;
  /** Tokens that one step can take, over all sequences. */
  readonly maxRows: number;
  /** Bytes of one cached position. */
  readonly cacheBytesPerPosition: number;
  /** Present when layers keep a state in place of positions, which limits {@link SequenceCache.truncate}. */
  readonly recurrent?: RecurrentFacts;
  /** @throws AppError `overloaded` when as many are open as the target was made for, which are at least `maxSequences` */
  openCache(): SequenceCache;
  /** Loads what a step of so many sequences needs, or of {@link maxSequences}, which may be fewer then. Default: all is there. */
  prepare?(sequences: number): Promise<void>;
  /**
   * Appends each span to its cache and computes the wanted logits. A row's values depend on its sequence alone, bit for
   * bit: not on the rows beside it, nor on how the sequence was cut into spans.
   * When it fails, or is aborted, the caches are as before.
   * @throws AppError `context_length_exceeded` when a span does not fit its cache, before anything is computed
   */
  step(spans: readonly StepSpan[], signal?: AbortSignal): Promise<StepResult>;
}
