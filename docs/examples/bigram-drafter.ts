/** Drafts what followed the latest token the last time it occurred, then what followed that one, and so on. */
import type { CommittedRows, Drafter, DraftRequest, DraftState, Proposal } from '../../src/drafter/drafter.ts';

/** What `--drafter-module` looks for. */
export function createDrafter(): Drafter {
  return new BigramDrafter();
}

class BigramDrafter implements Drafter {
  readonly kind = 'bigram';
  readonly maxDraftTokens = 4;
  readonly taps = [];

  open(): DraftState {
    return new BigramState();
  }

  async propose(requests: readonly DraftRequest[]): Promise<readonly Proposal[]> {
    return requests.map(({ state, anchor, budget }) => {
      const { tokens } = state as BigramState;
      const draft: number[] = [];
      while (draft.length < Math.min(budget, this.maxDraftTokens)) {
        const latest = draft.at(-1) ?? anchor;
        const next = tokens.findLast((_, i) => tokens[i - 1] === latest);
        if (next === undefined) break;
        draft.push(next);
      }
      return { tokens: draft };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class BigramState implements DraftState {
  readonly tokens: number[] = [];

  observe(rows: CommittedRows): void {
    this.tokens.push(...rows.tokens);
  }

  rewind(length: number): void {
    this.tokens.length = Math.min(this.tokens.length, length);
  }

  [Symbol.dispose](): void {}
}
