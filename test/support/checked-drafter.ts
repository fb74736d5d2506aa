/** Wraps a drafter and notes where its host breaks the rules of the port. */
import type { TokenId } from '../../src/core/token.ts';
import type { CommittedRows, Drafter, DraftRequest, DraftState, ForkedState, Proposal } from '../../src/drafter/drafter.ts';

export class CheckedDrafter implements Drafter {
  readonly kind: string;
  readonly maxDraftTokens: number;
  readonly taps: readonly number[];
  readonly bytesPerPosition: number;
  readonly fork?: NonNullable<Drafter['fork']>;
  /** What the host did wrong. Noted, not thrown: a host goes on without a drafter that throws. */
  readonly misuses: string[] = [];
  readonly #inner: Drafter;
  readonly #beforePropose: (signal: AbortSignal) => Promise<void> | void;
  readonly #open = new Set<CheckedState>();

  /** @param beforePropose awaited in each call of propose: where a test waits, fails or gives up */
  constructor(inner: Drafter, beforePropose: (signal: AbortSignal) => Promise<void> | void = () => undefined) {
    this.#inner = inner;
    this.#beforePropose = beforePropose;
    this.kind = inner.kind;
    this.maxDraftTokens = inner.maxDraftTokens;
    this.taps = inner.taps;
    this.bytesPerPosition = inner.bytesPerPosition ?? 0;
    const fork = inner.fork?.bind(inner);
    if (fork === undefined) return;
    this.fork = (state, length) => {
      const from = state as CheckedState;
      if (!this.#open.has(from)) this.misuses.push('a state was forked after it was disposed of');
      return this.#forked(fork(from.inner, length), from);
    };
  }

  get openStates(): number {
    return this.#open.size;
  }

  open(): CheckedState {
    const state = new CheckedState(this.#inner.open(), this.misuses, () => this.#open.delete(state));
    this.#open.add(state);
    return state;
  }

  #forked(inner: ForkedState, from: CheckedState): ForkedState {
    const forked = new CheckedState(inner.state, this.misuses, () => this.#open.delete(forked));
    forked.tokens.push(...from.tokens.slice(0, inner.length));
    this.#open.add(forked);
    return { state: forked, length: inner.length };
  }

  async propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    const asked = new Set(requests.map(({ state }) => state));
    if (asked.size !== requests.length) this.misuses.push('a state was asked twice in one call');
    for (const state of this.#open) {
      if (state.hasNewRows && !asked.has(state)) this.misuses.push('a state with new rows was left out');
    }
    const inner = requests.map((request) => {
      const state = request.state as CheckedState;
      if (!this.#open.has(state)) this.misuses.push('a state was asked after it was disposed of');
      if (request.budget > 0 && state.tokens.length === 0) this.misuses.push('a draft was wanted before anything was shown');
      if (request.budget < 0 || request.budget > this.maxDraftTokens) this.misuses.push(`a budget of ${request.budget}`);
      return { ...request, state: state.inner };
    });
    await this.#beforePropose(signal);
    signal.throwIfAborted();
    const proposals = await this.#inner.propose(inner, signal);
    for (const { state } of requests) (state as CheckedState).hasNewRows = false;
    return proposals;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#open.size > 0) this.misuses.push(`disposed of with ${this.#open.size} open states`);
    await this.#inner[Symbol.asyncDispose]();
  }
}

export class CheckedState implements DraftState {
  readonly inner: DraftState;
  /** What the host has shown of the sequence. */
  readonly tokens: TokenId[] = [];
  /** Rows were shown since the last call of propose: their taps are gone after the next step. */
  hasNewRows = false;
  readonly #misuses: string[];
  readonly #closed: () => void;

  constructor(inner: DraftState, misuses: string[], closed: () => void) {
    this.inner = inner;
    this.#misuses = misuses;
    this.#closed = closed;
  }

  observe(rows: CommittedRows): void {
    if (this.hasNewRows) this.#misuses.push('rows of two steps were shown without a call of propose between them');
    if (rows.tokens.length === 0) this.#misuses.push('no rows were shown');
    if (rows.position !== this.tokens.length) {
      this.#misuses.push(`rows from ${rows.position} were shown behind ${this.tokens.length}`);
    }
    this.hasNewRows = true;
    this.tokens.push(...rows.tokens);
    this.inner.observe(rows);
  }

  get waitingRows(): number {
    return this.inner.waitingRows ?? 0;
  }

  rewind(length: number): void {
    this.tokens.length = length;
    this.inner.rewind(length);
  }

  [Symbol.dispose](): void {
    this.#closed();
    this.inner[Symbol.dispose]();
  }
}
