import type { DraftLimit, LengthPolicy } from '../../src/decode/draft-length/length-policy.ts';

/** Cuts drafts for no reason, differently each time; the same seed gives the same cuts. */
export class ErraticLength implements LengthPolicy {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  ask(sequences: readonly { readonly budget: number }[]): readonly DraftLimit[] {
    return sequences.map(({ budget }) => this.#cut(budget));
  }

  trim(drafts: readonly { readonly proposal: { readonly tokens: readonly number[] } }[]): readonly DraftLimit[] {
    return drafts.map(({ proposal }) => this.#cut(proposal.tokens.length));
  }

  learn(): void {}

  learnStep(): void {}

  #cut(most: number): DraftLimit {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    const tokens = this.#state % (most + 1);
    return { tokens, reason: tokens < most ? 'low-confidence' : null };
  }
}
