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
import { type Continuation, type MatchOptions, SuffixIndex } from './suffix-index.ts';

export interface NgramOptions extends MatchOptions {
  readonly maxDraftTokens: number;
  /** A draft ends where it is less likely than this to hold as a whole. Default 0. */
  readonly leastProbability?: number;
}

/** On source code, prose and JSON these emit most tokens for the rows that they take; longer drafts pay where text repeats itself. */
export const NGRAM_DEFAULTS: NgramOptions = { maxDraftTokens: 16, maxMatch: 16, minMatch: 2, leastProbability: 0.25 };

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
      return budget === 0 ? NO_PROPOSAL : state.continuation(anchor, Math.min(budget, this.maxDraftTokens));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class NgramState implements DraftState {
  readonly #index: SuffixIndex;
  readonly #leastProbability: number;

  constructor(options: NgramOptions) {
    this.#index = new SuffixIndex(options);
    this.#leastProbability = options.leastProbability ?? 0;
  }

  observe(rows: CommittedRows): void {
    for (const token of rows.tokens) this.#index.push(token);
  }

  rewind(length: number): void {
    this.#index.truncate(length);
  }

  continuation(anchor: TokenId, limit: number): Continuation {
    const committed = this.#index.length;
    this.#index.push(anchor);
    const found = this.#index.continuation(limit, this.#leastProbability);
    this.#index.truncate(committed);
    return found;
  }

  [Symbol.dispose](): void {}
}
