/** What can be told of a DFlash drafter and its target before anything is computed. */
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import { resolveWeight } from '../../checkpoint/resolve-weight.ts';
import type { PlannedWeight } from '../../checkpoint/weight-plan.ts';
import { AppError } from '../../core/app-error.ts';
import type { DflashConfig } from './dflash-config.ts';
import { type OwnTables, ownTables, planDflashWeights, refuseUnclaimed } from './dflash-weights.ts';
import { readKeptTokens } from './kept-tokens.ts';
import { refuseMaskVector } from './mask-vector.ts';
import { refuseMismatch, type TargetShape } from './target-mismatch.ts';

export interface CheckedDflash {
  readonly own: OwnTables;
  readonly plan: readonly PlannedWeight[];
  /** As {@link readKeptTokens} reads them. */
  readonly keptTokens: Int32Array | null;
}

/** @throws AppError `incompatible_drafter` naming both numbers, or `invalid_checkpoint` */
export async function checkDflash(
  config: DflashConfig,
  checkpoint: Checkpoint,
  target: TargetShape,
  allowUnclaimed: boolean,
): Promise<CheckedDflash> {
  const { folder } = checkpoint;
  const own = ownTables(config, checkpoint);
  refuseMismatch(config, target, own, folder);
  refuseFusion(config, checkpoint);
  refuseMaskVector(folder);
  const plan = planDflashWeights(config, own);
  refuseUnclaimed(checkpoint, plan, folder, { besides: own.ids, allowUnclaimed });
  // Types and shapes do not depend on the format.
  for (const weight of plan) resolveWeight(checkpoint, weight, 'f32', 'f32');
  const keptTokens = await readKeptTokens(folder, config, checkpoint, own);
  if (keptTokens !== null && config.dflash2 !== null) {
    throw new AppError(
      'incompatible_drafter',
      `${folder}: expected a DFlash 2 drafter with the target's vocabulary, got a list of kept tokens, which its codebooks do not know; remove the list`,
    );
  }
  return { own, plan, keptTokens };
}

/** Named apart from the other shapes, as it is where a wrong list of taps shows. */
function refuseFusion({ taps, tapsAssumed, targetHidden }: DflashConfig, checkpoint: Checkpoint): void {
  if (!checkpoint.has('fc.weight')) return;
  const [, width = 0] = checkpoint.tensor('fc.weight').shape;
  if (width === taps.length * targetHidden) return;
  const layers = width / targetHidden;
  throw new AppError(
    'incompatible_drafter',
    tapsAssumed
      ? `${checkpoint.folder}: its config names no layers and fc.weight takes ${layers} of them, not the ${taps.length} of its trainer's default; ` +
          'write the ids that it was trained with into aux_hidden_state_layer_ids'
      : `${checkpoint.folder}: expected fc.weight to take ${taps.length} layers of ${targetHidden}, as its config lists, got a width of ${width}, ` +
          `which is ${layers}; check that config.json belongs to these weights`,
  );
}
