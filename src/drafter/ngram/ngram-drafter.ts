import { AppError } from '../../core/app-error.ts';
import type { TokenId } from '../../core/token.ts';
import {
  type CommittedRows,
  type Drafter,
  type DraftRequest,
  type DraftState,
  NO_PROPOSAL,
  type Proposal,
} from '../drafter.ts';
import { type LookupOptions, LookupTable } from './lookup-table.ts';

export interface NgramOptions extends LookupOptions {
  readonly maxDraftTokens: number;
}

export const NGRAM_DEFAULTS: NgramOptions = { maxDraftTokens: 8, maxMatch: 8, minMatch: 3 };

/** Drafts what followed the same tokens earlier in the prompt or the answer. Costs next to nothing, and needs no weights. */
export class NgramDrafter implements Drafter {
  readonly kind = 'ngram';
  readonly taps: readonly number[] = [];
  readonly maxDraftTokens: number;
  readonly #options: NgramOptions;

  constructor(options: NgramOptions = NGRAM_DEFAULTS) {
    this.#options = options;
    this.maxDraftTokens = options.maxDraftTokens;
  }

  open(): DraftState {
    return new NgramState(this.#options);
  }

  async propose(requests: readonly DraftRequest[]): Promise<readonly Proposal[]> {
    return requests.map(({ state, anchor, budget }) => {
      if (!(state instanceof NgramState)) throw new AppError('internal', 'A draft request names a state of another drafter');
      return budget === 0 ? NO_PROPOSAL : { tokens: state.continuation(anchor, Math.min(budget, this.maxDraftTokens)) };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class NgramState implements DraftState {
  readonly #table: LookupTable;

  constructor(options: LookupOptions) {
    this.#table = new LookupTable(options);
  }

  observe(rows: CommittedRows): void {
    for (const token of rows.tokens) this.#table.push(token);
  }

  rewind(length: number): void {
    this.#table.truncate(length);
  }

  continuation(anchor: TokenId, limit: number): TokenId[] {
    const committed = this.#table.length;
    this.#table.push(anchor);
    const tokens = this.#table.continuation(limit);
    this.#table.truncate(committed);
    return tokens;
  }

  [Symbol.dispose](): void {}
}
