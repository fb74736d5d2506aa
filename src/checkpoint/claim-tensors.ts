/** Which tensors of a checkpoint a model has a use for. */
import type { Checkpoint } from './checkpoint.ts';
import { type PlannedWeight, sourceNames } from './weight-plan.ts';

/** How the tensors of a checkpoint and those of a plan differ. */
export interface ClaimedTensors {
  readonly claimed: readonly string[];
  /** Of the plan, and absent. */
  readonly missing: readonly string[];
  /** Of the checkpoint, and of no use to the plan. */
  readonly unclaimed: readonly string[];
}

/** @param besides tensors that are used without being planned */
export function claimTensors(
  { names, has }: Pick<Checkpoint, 'names' | 'has'>,
  plan: readonly PlannedWeight[],
  besides: readonly string[] = [],
): ClaimedTensors {
  const wanted = new Set([...plan.flatMap(sourceNames), ...besides]);
  return {
    claimed: names.filter((name) => wanted.has(name)),
    missing: [...wanted].filter((name) => !has(name)),
    unclaimed: names.filter((name) => !wanted.has(name)),
  };
}

/** The first few names, as messages list them. */
export function listNames(names: readonly string[]): string {
  return `${names.slice(0, 4).join(', ')}${names.length > 4 ? ` and ${names.length - 4} more` : ''}`;
}
