/** Opens a model folder without loading it: what it declares to be, and which of its tensors that takes. */
import { resolve } from 'node:path';
import { type Checkpoint, openCheckpoint } from '../checkpoint/checkpoint.ts';
import type { PlannedWeight } from '../checkpoint/weight-plan.ts';
import { declaredFormat } from '../drafter/dflash/declared-format.ts';
import { type DflashConfig, readDflashConfig } from '../drafter/dflash/dflash-config.ts';
import { type OwnTables, ownTables, planDflashWeights } from '../drafter/dflash/dflash-weights.ts';
import { refuseOtherTap } from '../drafter/dflash/final-taps.ts';
import { refuseMaskVector } from '../drafter/dflash/mask-vector.ts';
import type { FinalTap } from '../drafter/dflash/tapped-layers.ts';
import type { TargetShape } from '../drafter/dflash/target-mismatch.ts';
import { planDecoderWeights } from '../target/decoder-weights.ts';
import { type ModelConfig, readModelConfig } from '../target/hf-config.ts';

interface OpenedFolder {
  readonly folder: string;
  readonly checkpoint: Checkpoint;
  readonly plan: readonly PlannedWeight[];
  /** Tensors that are used as they are. */
  readonly verbatim: readonly string[];
}

export interface DecoderFolder extends OpenedFolder {
  readonly role: 'decoder';
  readonly config: ModelConfig;
}

export interface DflashFolder extends OpenedFolder {
  readonly role: 'dflash';
  readonly config: DflashConfig;
  readonly own: OwnTables;
}

export type ModelFolder = DecoderFolder | DflashFolder;

export interface FolderOptions {
  readonly allowUnclaimed?: boolean;
  readonly finalTap?: FinalTap | null;
  /** Layers of the target of a drafter whose config leaves them to it. */
  readonly targetLayers?: number | null;
}

/** What a drafter must know of a model. */
export function targetShape({ spec }: ModelConfig): TargetShape {
  return { hiddenSize: spec.hidden, vocabSize: spec.vocab, layers: spec.layers.length };
}

/** @throws AppError `invalid_checkpoint` or `incompatible_drafter` when it is neither a model nor a drafter that is supported */
export async function openFolder(path: string, options: FolderOptions = {}): Promise<ModelFolder> {
  const folder = resolve(path);
  const { layout } = declaredFormat(folder);
  if (layout === null) {
    const config = readModelConfig(folder);
    const checkpoint = await openCheckpoint(folder);
    return { role: 'decoder', folder, config, checkpoint, plan: planDecoderWeights(config.spec), verbatim: [] };
  }
  const config = readDflashConfig(folder, options);
  refuseOtherTap(config, options.finalTap ?? null, folder);
  refuseMaskVector(folder);
  const checkpoint = await openCheckpoint(folder);
  const own = ownTables(config, checkpoint);
  return { role: 'dflash', folder, config, checkpoint, own, plan: planDflashWeights(config, own), verbatim: own.ids };
}
