import type { TokenId } from '../../core/token.ts';
import type { LogitsProcessor } from '../logits-processor.ts';

/** Forbids all tokens but the named ones. */
export class AllowedTokens implements LogitsProcessor {
  readonly #ids: readonly TokenId[];
  readonly #kept: Float32Array;

  /** @param ids at least one */
  constructor(ids: readonly TokenId[]) {
    this.#ids = ids;
    this.#kept = new Float32Array(ids.length);
  }

  process(logits: Float32Array): void {
    for (const [i, id] of this.#ids.entries()) this.#kept[i] = logits[id]!;
    logits.fill(Number.NEGATIVE_INFINITY);
    for (const [i, id] of this.#ids.entries()) logits[id] = this.#kept[i]!;
  }

  push(): void {}

  [Symbol.dispose](): void {}
}
