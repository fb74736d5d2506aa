/** Common part of drafters for tests: they draft from the tokens of the sequence, of which they keep all. */
import { AppError } from '../../src/core/app-error.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { CommittedRows, Drafter, DraftRequest, DraftState, Proposal } from '../../src/drafter/drafter.ts';

export abstract class HistoryDrafter implements Drafter {
  abstract readonly kind: string;
  readonly taps: readonly number[] = [];
  readonly maxDraftTokens: number;

  constructor(maxDraftTokens = 8) {
    this.maxDraftTokens = maxDraftTokens;
  }

  open(): DraftState {
    return new History();
  }

  async propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    signal.throwIfAborted();
    return requests.map(({ state, anchor, budget }) => {
      if (!(state instanceof History)) throw new AppError('internal', 'A draft request names a state of another drafter');
      return { tokens: this.draft([...state.tokens, anchor], Math.min(budget, this.maxDraftTokens)) };
    });
  }

  /** @returns `count` tokens that are to follow */
  protected abstract draft(tokens: readonly TokenId[], count: number): readonly TokenId[];

  async [Symbol.asyncDispose](): Promise<void> {}
}

class History implements DraftState {
  readonly tokens: TokenId[] = [];

  observe({ position, tokens }: CommittedRows): void {
    if (position !== this.tokens.length) {
      throw new AppError('internal', `Expected rows from position ${this.tokens.length}, got ${position}`);
    }
    this.tokens.push(...tokens);
  }

  rewind(length: number): void {
    this.tokens.length = Math.min(this.tokens.length, length);
  }

  [Symbol.dispose](): void {}
}
