import type { TokenId } from '../../core/token.ts';
import type { LogitsProcessor } from '../logits-processor.ts';
import { type Penalties, penalize } from '../penalties.ts';

/** Counts what occurs, and penalizes it. */
export class OccurrencePenalties implements LogitsProcessor {
  readonly #penalties: Penalties;
  readonly #prompt: ReadonlySet<TokenId>;
  readonly #output = new Map<TokenId, number>();

  constructor(penalties: Penalties, prompt: Iterable<TokenId>) {
    this.#penalties = penalties;
    this.#prompt = new Set(prompt);
  }

  process(logits: Float32Array): void {
    penalize(logits, this.#penalties, { prompt: this.#prompt, output: this.#output });
  }

  push(token: TokenId): void {
    this.#output.set(token, (this.#output.get(token) ?? 0) + 1);
  }

  [Symbol.dispose](): void {}
}
