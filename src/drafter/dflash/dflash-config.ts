/** What a DFlash drafter computes, whichever layout its checkpoint has. */
import { join } from 'node:path';
import { AppError } from '../../core/app-error.ts';
import type { TokenId } from '../../core/token.ts';
import type { DflashBody } from './body-config.ts';
import { type DflashLayout, declaredFormat } from './declared-format.ts';
import { readSpeculatorsConfig } from './speculators-config.ts';
import type { FinalTap } from './tapped-layers.ts';
import { readZlabConfig } from './zlab-config.ts';

export interface DflashConfig extends DflashBody {
  readonly layout: DflashLayout;
  /** Slots of a block, the anchor's included. */
  readonly blockSize: number;
  readonly maskTokenId: TokenId;
  /**
   * A slot predicts the token behind the position where it stands, so that the anchor's slot drafts, too; false: the token
   * at that position.
   */
  readonly draftsFromAnchor: boolean;
  /**
   * Tapped places of the target, in the order in which `fc` takes them: i is the output of layer i, -1 the embedding,
   * and the number of layers the last layer's output behind the final norm.
   */
  readonly taps: readonly number[];
  /** The config names no taps; these are the default of its trainer, to be proved by the width of `fc`. */
  readonly tapsAssumed: boolean;
  /** Which output of the last layer is meant where that is tapped; null: not said. */
  readonly finalTap: FinalTap | null;
  /** Width of a tapped row. */
  readonly targetHidden: number;
  /** Depth of the target that it was trained for; null: not recorded. */
  readonly targetLayers: number | null;
  /** Tokens that the head can choose; fewer than `vocab` where the checkpoint names them. */
  readonly draftVocab: number;
  readonly inputEmbeddingScale: number;
  readonly outputMultiplier: number;
  /** c in c · tanh(logit / c); null: none. */
  readonly logitSoftcap: number | null;
  /** Null: not a DFlash 2 drafter. */
  readonly dflash2: Dflash2Config | null;
}

/** What DFlash 2 adds to a drafter: convolutions over the block, and a choice among candidates from slot to slot. */
export interface Dflash2Config {
  /** Rows that a convolution sees, the current one included. */
  readonly convWidth: number;
  /** Neighbouring features that share a dynamic weight. */
  readonly convGroup: number;
  /** Tokens among which each slot chooses. */
  readonly candidates: number;
  /** Width of the codebooks. */
  readonly rank: number;
}

/** First slot of a block that drafts. */
export function firstDraftingSlot({ draftsFromAnchor }: Pick<DflashConfig, 'draftsFromAnchor'>): 0 | 1 {
  return draftsFromAnchor ? 0 : 1;
}

/** Tokens of the longest draft. */
export function longestDraft(config: Pick<DflashConfig, 'blockSize' | 'draftsFromAnchor'>): number {
  return config.blockSize - firstDraftingSlot(config);
}

/** How a layer's block rows see the context and each other. */
export interface LayerAttention {
  /** True: a slot sees itself and those before it; false: the whole block. */
  readonly causal: boolean;
  /** Positions that a slot may look back, itself included; null: all. */
  readonly window: number | null;
}

export interface ReadDflashOptions {
  /** Layers of the target it is to draft for, for what a config leaves to it; null: not known. */
  readonly targetLayers?: number | null;
  /** Which output of the last layer is meant, where that is tapped and the config has no `final_tap`. */
  readonly finalTap?: FinalTap | null;
  /** Keys that nothing is known of are no error. */
  readonly allowUnclaimed?: boolean;
}

/**
 * @throws AppError `invalid_checkpoint` naming what is missing or contradictory, `incompatible_drafter` for a drafter of
 *   another kind
 */
export function readDflashConfig(folder: string, options: ReadDflashOptions = {}): DflashConfig {
  const { layout, architectures } = declaredFormat(folder);
  const file = join(folder, 'config.json');
  const all = { targetLayers: null, finalTap: null, allowUnclaimed: false, ...options };
  if (layout === 'speculators') return readSpeculatorsConfig(file, all);
  if (layout === 'z-lab') return readZlabConfig(file, all);
  throw new AppError(
    'invalid_checkpoint',
    `${file}: expected architectures ["DFlashDraftModel"] or speculators_model_type "dflash", got ${JSON.stringify(architectures)}; choose the folder of a DFlash drafter`,
  );
}
