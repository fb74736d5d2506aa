/** A drafter module whose drafter takes a second for each draft. */
import { setTimeout as sleep } from 'node:timers/promises';
import { NO_PROPOSAL } from '../../../src/drafter/drafter.ts';
import type { DrafterModule } from '../../../src/drafter/drafter-context.ts';

export const createDrafter: DrafterModule['createDrafter'] = () => ({
  kind: 'stalling',
  taps: [],
  maxDraftTokens: 4,
  open: () => ({ observe: () => undefined, rewind: () => undefined, [Symbol.dispose]: () => undefined }),
  async propose(requests) {
    await sleep(1000);
    return requests.map(() => NO_PROPOSAL);
  },
  async [Symbol.asyncDispose]() {},
});
