import type { Drafter, DraftState } from '../drafter.ts';
import { NO_PROPOSAL } from '../drafter.ts';

const BLANK: DraftState = {
  observe: () => undefined,
  rewind: () => undefined,
  [Symbol.dispose]: () => undefined,
};

/** Proposes nothing: plain decoding, the baseline of every comparison. */
export class NoneDrafter implements Drafter {
  readonly kind = 'none';
  readonly maxDraftTokens = 0;
  readonly taps: readonly number[] = [];

  open(): DraftState {
    return BLANK;
  }

  async propose(requests: readonly unknown[]) {
    return requests.map(() => NO_PROPOSAL);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
