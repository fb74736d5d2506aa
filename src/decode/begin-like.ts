/** A drafter's part in a sequence whose first rows were computed for another one. */
import type { TokenId } from '../core/token.ts';
import type { Drafter, DraftState, ForkedState } from '../drafter/drafter.ts';

export interface DraftSource {
  readonly tokens: readonly TokenId[];
  /** What a drafter remembers of them; null without one. */
  readonly draft: { readonly drafter: Drafter; readonly state: DraftState } | null;
}

/** Whether the drafter can: it has a state of its own to fork, or it needs nothing but tokens. */
export function canBeginLike(drafter: Drafter, source: DraftSource): boolean {
  return drafter.taps.length === 0 || (drafter.fork !== undefined && source.draft?.drafter === drafter);
}

/**
 * A state that has observed the first rows of the source: `length` of them, or as many as the drafter knows.
 * @throws whatever the drafter throws
 */
export function beginLike(drafter: Drafter, { tokens, draft }: DraftSource, length: number): ForkedState {
  if (drafter.fork !== undefined && draft?.drafter === drafter) return drafter.fork(draft.state, length);
  const state = drafter.open();
  try {
    state.observe({ position: 0, tokens: tokens.slice(0, length), taps: new Map(), firstRow: 0 });
    return { state, length };
  } catch (error) {
    state[Symbol.dispose]();
    throw error;
  }
}
