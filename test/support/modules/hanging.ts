/** A drafter module whose drafts never come, and whose timer would keep any process alive. */
import type { DrafterModule } from '../../../src/drafter/drafter-context.ts';

export const createDrafter: DrafterModule['createDrafter'] = () => ({
  kind: 'hanging',
  taps: [],
  maxDraftTokens: 4,
  open: () => ({ observe: () => undefined, rewind: () => undefined, [Symbol.dispose]: () => undefined }),
  propose() {
    setInterval(() => undefined, 1000);
    process.stdout.write('asked for a draft\n');
    return new Promise(() => undefined);
  },
  async [Symbol.asyncDispose]() {},
});
