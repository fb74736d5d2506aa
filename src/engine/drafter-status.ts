import { FIXED_LENGTH } from '../decode/draft-length/fixed-length.ts';
import type { SplitWeights } from './drafter-split.ts';
import type { DrafterStatistics } from './drafter-statistics.ts';
import type { DrafterSwaps } from './drafter-swaps.ts';
import type { DrafterStatus } from './engine.ts';

/** The default drafter first, plain decoding last. */
export function drafterStatus(swaps: DrafterSwaps, split: SplitWeights | null, statistics: DrafterStatistics): DrafterStatus[] {
  const drafters = swaps.current;
  const first = drafters[0]?.name ?? 'none';
  const use = (name: string) => ({
    isDefault: name === first,
    weight: split === null ? Number(name === first) : (split.get(name) ?? 0),
    ...statistics.served(name),
    shadow: statistics.shadow(name),
    swaps: swaps.history(name),
  });
  return [
    ...drafters.map(
      ({ name, drafter, folder, draftTokens, lengths }): DrafterStatus => ({
        name,
        kind: drafter.kind,
        folder: folder ?? null,
        taps: drafter.taps,
        blockDraftTokens: drafter.maxDraftTokens,
        maxDraftTokens: draftTokens,
        lengthPolicy: lengths === FIXED_LENGTH ? 'fixed' : 'auto',
        synthetic: drafter.synthetic !== undefined,
        off: drafter.off,
        ...use(name),
      }),
    ),
    {
      name: 'none',
      kind: 'none',
      folder: null,
      taps: [],
      blockDraftTokens: 0,
      maxDraftTokens: 0,
      lengthPolicy: 'none',
      synthetic: false,
      off: null,
      ...use('none'),
    },
  ];
}
