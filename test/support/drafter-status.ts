/** What an engine may say of a drafter: 2 drafts of 3 and 1 tokens, 2 of them accepted. */
import { AcceptanceTally } from '../../src/core/acceptance-tally.ts';
import type { DrafterStatus } from '../../src/engine/engine.ts';

export function drafterStatus(options: Partial<DrafterStatus> = {}): DrafterStatus {
  const tally = new AcceptanceTally();
  tally.add('r1', { drafted: 3, accepted: 2 }, null);
  tally.add('r1', { drafted: 1, accepted: 0 }, 'low-confidence');
  tally.add('r1', { drafted: 0, accepted: 0 }, 'near-max-tokens');
  tally.end('r1');
  return {
    name: 'a',
    kind: 'dflash',
    folder: '/models/a',
    taps: [1, 3],
    blockDraftTokens: 7,
    maxDraftTokens: 3,
    lengthPolicy: 'auto',
    synthetic: false,
    isDefault: true,
    weight: 0.8,
    off: null,
    requests: 1,
    counts: tally.counts(),
    shadow: null,
    swaps: [],
    ...options,
  };
}
