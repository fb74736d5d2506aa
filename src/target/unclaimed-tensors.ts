/** Tensors of a decoder that its config does not ask for. */
import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import { claimTensors, listNames } from '../checkpoint/claim-tensors.ts';
import { AppError } from '../core/app-error.ts';
import type { DecoderSpec } from './decoder-spec.ts';
import { planDecoderWeights } from './decoder-weights.ts';

const HEAD = 'lm_head.';
/** Tables that follow from the config; old checkpoints store them. */
const ROTARY_TABLE = /\.rotary_emb\.inv_freq$/;

/**
 * Those among the decoder's own that a decoder of this spec would do without, such as biases or layers beyond its last:
 * it would run, and be another model. Other parts of a checkpoint, such as for images, are not the decoder's.
 */
export function unclaimedTensors(checkpoint: Pick<Checkpoint, 'names' | 'has'>, spec: DecoderSpec): string[] {
  const { unclaimed } = claimTensors(checkpoint, planDecoderWeights(spec));
  return unclaimed.filter((name) => {
    if (spec.tiedHead && name === `${HEAD}weight`) return false;
    return (name.startsWith(`${spec.weightPrefix}.`) || name.startsWith(HEAD)) && !ROTARY_TABLE.test(name);
  });
}

/** @throws AppError `invalid_checkpoint` when there are any */
export function refuseUnclaimedTensors(checkpoint: Pick<Checkpoint, 'names' | 'has'>, spec: DecoderSpec, folder: string): void {
  const unclaimed = unclaimedTensors(checkpoint, spec);
  if (unclaimed.length === 0) return;
  throw new AppError(
    'invalid_checkpoint',
    `${folder} has tensors that a ${spec.family} decoder of its config does not: ${listNames(unclaimed)}; ` +
      'check that config.json belongs to these weights, or allow unclaimed ones if they are nothing',
  );
}
