import type { TokenId } from '../core/token.ts';
import type { ReasoningTokens } from '../core/token-rules.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';

/** `before`: nothing was emitted, and the answer may begin with reasoning or without. */
type State = 'before' | 'reasoning' | 'after';

/**
 * Leaves the reasoning at the beginning of an answer alone, its closing token included, and has another processor see to the
 * rest, which is all that one learns of. Owns it.
 */
export class AfterReasoning implements LogitsProcessor {
  readonly #inner: LogitsProcessor;
  readonly #tokens: ReasoningTokens;
  #state: State;

  constructor(inner: LogitsProcessor, tokens: ReasoningTokens) {
    this.#inner = inner;
    this.#tokens = tokens;
    this.#state = tokens.begin === null ? 'reasoning' : 'before';
  }

  get ended(): boolean {
    return this.#inner.ended ?? false;
  }

  async admit(draft: readonly TokenId[]): Promise<number> {
    const { free } = this.#split(draft);
    const ruled = draft.slice(free);
    if (ruled.length === 0) return free;
    return free + ((await this.#inner.admit?.(ruled)) ?? ruled.length);
  }

  async prepare(draft: readonly TokenId[]): Promise<void> {
    const { free, state } = this.#split(draft);
    // The row of the first token is the inner one's, and so are those behind the reasoning.
    if (this.#state !== 'before' && state === 'reasoning') return;
    await this.#inner.prepare?.(draft.slice(free));
  }

  process(logits: Float32Array): void {
    if (this.#state === 'reasoning') return;
    const { begin } = this.#tokens;
    const opening = begin === null ? undefined : logits[begin];
    this.#inner.process(logits);
    if (this.#state === 'before' && begin !== null && opening !== undefined) logits[begin] = opening;
  }

  push(token: TokenId): void {
    const { free, state } = this.#split([token]);
    this.#state = state;
    if (free === 0) this.#inner.push(token);
  }

  [Symbol.dispose](): void {
    this.#inner[Symbol.dispose]();
  }

  /** How many of the next tokens are reasoning, and where the answer is behind those. */
  #split(next: readonly TokenId[]): { readonly free: number; readonly state: State } {
    const { begin, end } = this.#tokens;
    let state = this.#state;
    let free = 0;
    for (const token of next) {
      if (state === 'before') state = token === begin ? 'reasoning' : 'after';
      else if (state === 'reasoning' && token === end) {
        return { free: free + 1, state: 'after' };
      }
      if (state === 'after') break;
      free++;
    }
    return { free, state };
  }
}
