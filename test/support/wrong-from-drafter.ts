import type { TokenId } from '../../src/core/token.ts';
import { HistoryDrafter } from './history-drafter.ts';

export interface WrongFromOptions {
  /** The token that plain decoding puts behind a prefix. */
  readonly next: (prefix: readonly TokenId[]) => TokenId;
  /** At least 2, so that there is a wrong token. */
  readonly vocabSize: number;
  /** First slot of the draft that is wrong; those behind it are wrong as well. */
  readonly wrongFrom: number;
  readonly maxDraftTokens?: number;
}

/** Right up to a slot, wrong from there: with drafts longer than that, each round emits `wrongFrom` + 1 tokens. */
export class WrongFromDrafter extends HistoryDrafter {
  readonly kind: string = 'wrong-from';
  readonly #options: WrongFromOptions;

  constructor(options: WrongFromOptions) {
    super(options.maxDraftTokens);
    this.#options = options;
  }

  protected override draft(tokens: readonly TokenId[], count: number): readonly TokenId[] {
    const { next, vocabSize, wrongFrom } = this.#options;
    const known = [...tokens];
    for (let slot = 0; slot < count; slot++) {
      const right = next(known);
      known.push(slot < wrongFrom ? right : (right + 1) % vocabSize);
    }
    return known.slice(tokens.length);
  }
}
