/** Recurrent targets: states within prompts, kept so that later prompts can part from there. */
import type { Sequence } from '../decode/sequence.ts';
import type { Drafter, DraftRequest, DraftState } from '../drafter/drafter.ts';
import { type PrefixCache, type PrefixSource, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import type { RunningRequest } from './running-request.ts';

/**
 * Keeps a copy of each prompt under way that has come to a multiple of {@link SNAPSHOT_POSITIONS}, target and drafter together.
 * A drafter that fails is left out by its sequences.
 */
export async function snapshotPrompts(
  running: readonly RunningRequest[],
  prefixes: PrefixCache,
  signal: AbortSignal,
): Promise<void> {
  const due = running.flatMap((request) => dueSource(request, prefixes) ?? []);
  if (due.length === 0) return;
  await takeIn(new Set(due.flatMap(({ draft }) => draft?.drafter ?? [])), running, signal);
  if (signal.aborted) return;
  for (const request of running) {
    // Looked at again: prompts that are alike need one copy, and one whose drafter has failed is kept without.
    const source = dueSource(request, prefixes);
    if (source === null) continue;
    try {
      prefixes.snapshot(source);
    } catch {
      // Nobody misses a copy: the sequence goes on with what it has.
    }
  }
}

/** The request's sequence, if a copy is to be made of it. */
function dueSource(request: RunningRequest, prefixes: PrefixCache): PrefixSource | null {
  const source = request.prefix();
  if (source === null || (request.started?.sequence.emitted ?? 0) > 0) return null;
  const { length } = source.cache;
  return length > 0 && length % SNAPSHOT_POSITIONS === 0 && prefixes.wantsSnapshot(source) ? source : null;
}

/**
 * Drafters turn rows into context when they are asked next; the copies need them now. A drafter that is asked at all is asked
 * for all its sequences, those included that it drafts for in the shadow of another.
 */
async function takeIn(drafters: ReadonlySet<Drafter>, running: readonly RunningRequest[], signal: AbortSignal): Promise<void> {
  const sequences = running.flatMap(({ started }) => started?.sequence ?? []);
  for (const drafter of drafters) {
    const members = sequences.filter(({ drafting }) => drafting?.drafter === drafter);
    const shadows = sequences.flatMap((sequence) =>
      sequence.shadows.flatMap((shadow) => (shadow.drafter === drafter ? [{ sequence, shadow }] : [])),
    );
    const requests = [
      ...members.map((sequence) => takesIn(sequence, sequence.drafting!.state)),
      ...shadows.map(({ sequence, shadow }) => takesIn(sequence, shadow.state)),
    ];
    try {
      await drafter.propose(requests, signal);
    } catch (error) {
      if (signal.aborted) return;
      for (const sequence of members) sequence.dropDrafter(error);
      for (const { sequence, shadow } of shadows) sequence.dropShadow(shadow, error);
    }
  }
}

function takesIn({ tokens, cache }: Sequence, state: DraftState): DraftRequest {
  return { state, anchor: tokens[cache.length]!, budget: 0 };
}
