/** Recurrent targets: states within prompts, kept so that later prompts can part from there. */

import { type PrefixCache, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import type { RunningRequest } from './running-request.ts';

/**
 * Keeps a copy of each prompt under way that has come to a multiple of {@link SNAPSHOT_POSITIONS}, target and drafter together.
 * A drafter that fails is left out by its sequence.
 */
export async function snapshotPrompts(
  running: readonly RunningRequest[],
  prefixes: PrefixCache,
  signal: AbortSignal,
): Promise<void> {
  for (const request of running) {
    const source = request.prefix();
    const sequence = request.started?.sequence;
    if (source === null || sequence === undefined || sequence.emitted > 0) continue;
    const { length } = source.cache;
    if (length === 0 || length % SNAPSHOT_POSITIONS !== 0 || !prefixes.wantsSnapshot(source)) continue;
    try {
      // A drafter turns rows into context when it is asked next; the copy needs them now.
      const { draft } = source;
      if (draft !== null)
        await draft.drafter.propose([{ state: draft.state, anchor: source.tokens[length]!, budget: 0 }], signal);
      prefixes.snapshot(source);
    } catch (error) {
      if (signal.aborted) return;
      sequence.dropDrafter(error);
    }
  }
}
