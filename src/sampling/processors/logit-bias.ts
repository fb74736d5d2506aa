import type { TokenId } from '../../core/token.ts';
import type { LogitsProcessor } from '../logits-processor.ts';

/** Adds to the logits of some tokens. */
export class LogitBias implements LogitsProcessor {
  readonly #biases: ReadonlyMap<TokenId, number>;

  constructor(biases: ReadonlyMap<TokenId, number>) {
    this.#biases = biases;
  }

  process(logits: Float32Array): void {
    for (const [id, bias] of this.#biases) logits[id] = logits[id]! + bias;
  }

  push(): void {}

  [Symbol.dispose](): void {}
}
