/** Plays the host of a drafter: computes rows with a target and shows them, as decoding does. */
import type { TokenId } from '../../src/core/token.ts';
import { beginLike } from '../../src/decode/begin-like.ts';
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
    return this.#add(this.drafter.open(), this.target.openCache());
  }

  /**
   * A sequence that begins with the first `length` rows of another, as far as its drafter knows them.
   * @param tokens of the other
   */
  branch({ state, cache }: ShownSequence, tokens: readonly TokenId[], length: number): ShownSequence {
    const forked = beginLike(this.drafter, { tokens, draft: { drafter: this.drafter, state } }, length);
    const copy = this.target.openCache();
    copy.copyFrom(cache, forked.length);
    return this.#add(forked.state, copy);
  }

  #add(state: DraftState, cache: SequenceCache): ShownSequence {
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
