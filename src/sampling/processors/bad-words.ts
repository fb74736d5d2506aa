import type { TokenId } from '../../core/token.ts';
import type { LogitsProcessor } from '../logits-processor.ts';

/** Forbids the last token of each sequence while the answer ends with the tokens before it. The prompt does not count. */
export class BadWords implements LogitsProcessor {
  readonly #words: readonly (readonly TokenId[])[];
  readonly #longest: number;
  /** The end of the answer, as far as it matters. */
  readonly #end: TokenId[] = [];

  /** @param words at least one token each */
  constructor(words: readonly (readonly TokenId[])[]) {
    this.#words = words;
    this.#longest = words.reduce((length, word) => Math.max(length, word.length), 0);
  }

  process(logits: Float32Array): void {
    for (const word of this.#words) {
      const start = this.#end.length - (word.length - 1);
      const isNext = start >= 0 && this.#end.every((token, i) => i < start || token === word[i - start]);
      if (isNext) logits[word.at(-1)!] = Number.NEGATIVE_INFINITY;
    }
  }

  push(token: TokenId): void {
    this.#end.push(token);
    if (this.#end.length >= this.#longest) this.#end.shift();
  }

  [Symbol.dispose](): void {}
}
