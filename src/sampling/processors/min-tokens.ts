import type { TokenId } from '../../core/token.ts';
import type { LogitsProcessor } from '../logits-processor.ts';

/** Forbids the tokens that would end an answer before it has its least length. */
export class MinTokens implements LogitsProcessor {
  readonly #ends: readonly TokenId[];
  #missing: number;

  /** @param count tokens that are to be emitted before one of `ends` */
  constructor(count: number, ends: readonly TokenId[]) {
    this.#missing = count;
    this.#ends = ends;
  }

  process(logits: Float32Array): void {
    if (this.#missing > 0) for (const id of this.#ends) logits[id] = Number.NEGATIVE_INFINITY;
  }

  push(): void {
    this.#missing--;
  }

  [Symbol.dispose](): void {}
}
