import type { Phase, VuState } from './vu-state.ts';

/** @throws where a script uses what does not exist yet, or no longer */
export function requirePhase(state: VuState, what: string, phases: readonly Phase[]): void {
  if (phases.includes(state.phase)) return;
  throw new Error(`Expected ${what} in ${phases.join(', ')} code, got it in ${state.phase} code`);
}
