import type { GrammarMatcher } from '@mlc-ai/web-xgrammar';
import type { TokenId } from '../core/token.ts';
import type { GrammarVocabulary } from './grammar-messages.ts';

/** Where one answer stands in its structure. Behind the structure's end there are end-of-sequence tokens only. */
export class StructureMatcher implements Disposable {
  readonly #inner: GrammarMatcher;
  readonly #vocabSize: number;
  readonly #stopIds: ReadonlySet<TokenId>;
  readonly #onlyStops: Int32Array;

  constructor(inner: GrammarMatcher, { vocabSize, stopIds }: GrammarVocabulary) {
    this.#inner = inner;
    this.#vocabSize = vocabSize;
    this.#stopIds = new Set(stopIds);
    this.#onlyStops = new Int32Array(Math.ceil(vocabSize / 32));
    for (const id of stopIds) this.#onlyStops[id >> 5]! |= 1 << (id & 31);
  }

  /** Moves on; false, and nothing changed, when the structure has no such token here. */
  accept(token: TokenId): boolean {
    if (this.#inner.isTerminated()) return this.#stopIds.has(token);
    return token < this.#vocabSize && this.#inner.acceptToken(token);
  }

  /** How many tokens of a draft the structure has at its beginning. Changes nothing. */
  count(draft: readonly TokenId[]): number {
    let allowed = 0;
    let moved = 0;
    for (const token of draft) {
      const ended = this.#inner.isTerminated();
      if (!this.accept(token)) break;
      allowed++;
      if (!ended) moved++;
    }
    if (moved > 0) this.#inner.rollBack(moved);
    return allowed;
  }

  /**
   * @param draft of which the structure has all tokens
   * @returns [draft.length + 1, ceil(vocabSize / 32)] bits of what may follow each of its beginnings
   */
  async masks(draft: readonly TokenId[]): Promise<Int32Array> {
    const words = this.#onlyStops.length;
    const masks = new Int32Array((draft.length + 1) * words);
    let moved = 0;
    for (let row = 0; row <= draft.length; row++) {
      const ended = this.#inner.isTerminated();
      masks.set(ended ? this.#onlyStops : await this.#inner.getNextTokenBitmask(), row * words);
      if (row === draft.length || ended) continue;
      this.#inner.acceptToken(draft[row]!);
      moved++;
    }
    if (moved > 0) this.#inner.rollBack(moved);
    return masks;
  }

  [Symbol.dispose](): void {
    this.#inner.dispose();
  }
}
