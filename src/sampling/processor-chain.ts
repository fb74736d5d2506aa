import type { TokenId } from '../core/token.ts';
import type { LogitsProcessor } from './logits-processor.ts';

/** Several processors as one, applied in the order given. Owns them. */
export class ProcessorChain implements LogitsProcessor {
  readonly #links: readonly LogitsProcessor[];

  constructor(links: readonly LogitsProcessor[]) {
    this.#links = links;
  }

  async admit(draft: readonly TokenId[]): Promise<number> {
    const allowed = await Promise.all(this.#links.map((link) => link.admit?.(draft) ?? draft.length));
    return Math.min(draft.length, ...allowed);
  }

  async prepare(draft: readonly TokenId[]): Promise<void> {
    await Promise.all(this.#links.map((link) => link.prepare?.(draft)));
  }

  process(logits: Float32Array): void {
    for (const link of this.#links) link.process(logits);
  }

  push(token: TokenId): void {
    for (const link of this.#links) link.push(token);
  }

  get ended(): boolean {
    return this.#links.some(({ ended }) => ended ?? false);
  }

  [Symbol.dispose](): void {
    for (const link of this.#links) link[Symbol.dispose]();
  }
}
