import type { TokenId } from '../../core/token.ts';
import type { Ending, StopRule } from '../../decode/stop-rule.ts';

/** An answer ends with any of the model's own end tokens. */
export class EndTokens implements StopRule {
  readonly #tokens: ReadonlySet<TokenId>;

  constructor(tokens: readonly TokenId[]) {
    this.#tokens = new Set(tokens);
  }

  push(token: TokenId): Ending | null {
    return this.#tokens.has(token) ? { reason: 'stop', stopReason: null } : null;
  }
}
