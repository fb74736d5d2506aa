import type { CommittedRows, Drafter, DraftRequest, DraftState, Proposal } from '../drafter.ts';
import type { SyntheticAcceptance } from './synthetic-acceptance.ts';

const BLANK: DraftState = {
  observe: (_rows: CommittedRows) => undefined,
  rewind: () => undefined,
  [Symbol.dispose]: () => undefined,
};

/**
 * Drafts stand-ins, of which the host keeps as many as {@link SyntheticAcceptance} says. What it keeps is not what the
 * target would say: the text is worth nothing, and everything that is made with it must say so.
 *
 * A stand-in is the anchor again: it did not end the answer, so its copies do not either.
 */
export class SyntheticDrafter implements Drafter {
  readonly kind = 'synthetic';
  readonly taps: readonly number[] = [];
  readonly maxDraftTokens: number;
  readonly synthetic: SyntheticAcceptance;

  constructor(synthetic: SyntheticAcceptance) {
    this.synthetic = synthetic;
    this.maxDraftTokens = synthetic.rates.length;
  }

  open(): DraftState {
    return BLANK;
  }

  async propose(requests: readonly DraftRequest[]): Promise<readonly Proposal[]> {
    return requests.map(({ anchor, budget }) => ({
      tokens: new Array<number>(Math.min(budget, this.maxDraftTokens)).fill(anchor),
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
