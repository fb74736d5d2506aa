import type { Drafter, DraftRequest, DraftState, Proposal } from '../../src/drafter/drafter.ts';

export type DrafterCall = 'open' | 'observe' | 'propose' | 'dispose';

/** Works, drafting the anchor again and again, until one of its methods throws. */
export class ThrowingDrafter implements Drafter {
  readonly kind = 'throwing';
  readonly taps: readonly number[] = [];
  readonly maxDraftTokens = 4;
  static readonly MESSAGE = 'the drafter failed on purpose';
  readonly #failing: DrafterCall;
  #callsLeft: number;

  /** @param goodCalls calls of that method that work */
  constructor(failing: DrafterCall, goodCalls = 0) {
    this.#failing = failing;
    this.#callsLeft = goodCalls;
  }

  open(): DraftState {
    this.#called('open');
    return {
      observe: () => this.#called('observe'),
      rewind: () => undefined,
      [Symbol.dispose]: () => this.#called('dispose'),
    };
  }

  async propose(requests: readonly DraftRequest[]): Promise<readonly Proposal[]> {
    this.#called('propose');
    return requests.map(({ anchor, budget }) => ({ tokens: new Array<number>(budget).fill(anchor) }));
  }

  #called(call: DrafterCall): void {
    if (call !== this.#failing) return;
    if (this.#callsLeft === 0) throw new Error(ThrowingDrafter.MESSAGE);
    this.#callsLeft--;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
