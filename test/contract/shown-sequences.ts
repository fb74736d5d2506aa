/** Plays the host of a drafter: computes rows with a target and shows them, as decoding does. */
import type { TokenId } from '../../src/core/token.ts';
import type { Drafter, DraftState, Proposal } from '../../src/drafter/drafter.ts';
import type { SequenceCache, Target } from '../../src/target/target.ts';

/** Stands behind every sequence when it is drafted for. */
export const ANCHOR: TokenId = 2;

export interface ShownSequence extends Disposable {
  readonly state: DraftState;
  readonly cache: SequenceCache;
}

export class ShownSequences implements Disposable {
  readonly drafter: Drafter;
  readonly target: Target;
  readonly #open: ShownSequence[] = [];

  constructor(drafter: Drafter, target: Target) {
    this.drafter = drafter;
    this.target = target;
  }

  open(): ShownSequence {
    const state = this.drafter.open();
    const cache = this.target.openCache();
    const sequence = {
      state,
      cache,
      [Symbol.dispose]() {
        state[Symbol.dispose]();
        cache[Symbol.dispose]();
      },
    };
    this.#open.push(sequence);
    return sequence;
  }

  /** One step of the target over all the tokens, and each sequence told of its own. */
  async show(...parts: readonly (readonly [ShownSequence, readonly TokenId[]])[]): Promise<void> {
    const positions = parts.map(([{ cache }]) => cache.length);
    const spans = parts.map(([{ cache }, tokens]) => ({ cache, tokens, logitsFrom: tokens.length }));
    const { taps, firstRow } = await this.target.step(spans);
    for (const [i, [{ state }, tokens]] of parts.entries()) {
      state.observe({ position: positions[i]!, tokens, taps, firstRow: firstRow(i) });
    }
  }

  async propose(...parts: readonly (readonly [ShownSequence, number])[]): Promise<Proposal[]> {
    const requests = parts.map(([{ state }, budget]) => ({ state, anchor: ANCHOR, budget }));
    return [...(await this.drafter.propose(requests, new AbortController().signal))];
  }

  async proposeFor(sequence: ShownSequence, budget: number): Promise<Proposal> {
    const [proposal] = await this.propose([sequence, budget]);
    if (proposal === undefined) throw new Error('Expected one proposal, got none');
    return proposal;
  }

  rewind({ state, cache }: ShownSequence, length: number): void {
    state.rewind(length);
    cache.truncate(length);
  }

  [Symbol.dispose](): void {
    for (const sequence of this.#open) sequence[Symbol.dispose]();
  }
}
