/** The weights of a DFlash drafter: 11 tensors per layer and 3 more; tables of its own in speculators' layout, and what DFlash 2 adds. */
import type { Checkpoint } from '../../checkpoint/checkpoint.ts';
import { claimTensors, listNames } from '../../checkpoint/claim-tensors.ts';
import type { PlannedWeight } from '../../checkpoint/weight-plan.ts';
import { AppError } from '../../core/app-error.ts';
import { PREDECESSORS, SELECTOR_PROJECTION, SUCCESSORS } from './candidate-lattice.ts';
import { ownerOfTensor } from './declared-format.ts';
import type { DflashConfig } from './dflash-config.ts';

/** A drafter's own embedding table [vocab, hidden] and head [draftVocab, hidden], and its tables of ids, by name. */
export const OWN_EMBEDDING = 'embed_tokens.weight';
export const OWN_HEAD = 'lm_head.weight';
/** [draftVocab] of integers: how far each row of the head lies below its target id. */
export const DRAFT_TO_TARGET = 'd2t';
/** [vocab] of booleans: the target ids that have a row. */
export const TARGET_TO_DRAFT = 't2d';

/** What a checkpoint may have beside the layers. */
export interface OwnTables {
  readonly embedding: boolean;
  readonly head: boolean;
  /** Integer tables: used as they are, never converted. */
  readonly ids: readonly string[];
  /** What the codebooks of DFlash 2 are called: some have them as parameters, some as tables with a `weight`. */
  readonly codebooks: { readonly predecessors: string; readonly successors: string };
}

/** z-lab's layout has no tables and no ids: there they would be tensors that nothing uses. */
export function ownTables(config: DflashConfig, checkpoint: Pick<Checkpoint, 'has'>): OwnTables {
  const has = (name: string) => config.layout === 'speculators' && checkpoint.has(name);
  const codebook = (name: string) => (checkpoint.has(name) ? name : `${name}.weight`);
  return {
    embedding: has(OWN_EMBEDDING),
    head: has(OWN_HEAD),
    ids: [DRAFT_TO_TARGET, TARGET_TO_DRAFT].filter(has),
    codebooks: { predecessors: codebook(PREDECESSORS), successors: codebook(SUCCESSORS) },
  };
}

export function planDflashWeights(config: DflashConfig, own: OwnTables): PlannedWeight[] {
  const weight = (kind: PlannedWeight['kind'], name: string, ...shape: number[]): PlannedWeight => ({
    name,
    source: name,
    kind,
    shape,
  });
  const { hidden, intermediate, headDim } = config;
  const width = config.heads * headDim;
  const kvWidth = config.kvHeads * headDim;
  const plan = [
    weight('linear', 'fc.weight', hidden, config.taps.length * config.targetHidden),
    weight('vector', 'hidden_norm.weight', hidden),
    weight('vector', 'norm.weight', hidden),
    ...(own.embedding ? [weight('embedding', OWN_EMBEDDING, config.vocab, hidden)] : []),
    ...(own.head ? [weight('head', OWN_HEAD, config.draftVocab, hidden)] : []),
  ];
  const { dflash2 } = config;
  if (dflash2 !== null) {
    plan.push(
      weight('linear', SELECTOR_PROJECTION, dflash2.rank, hidden),
      { ...weight('embedding', PREDECESSORS, config.vocab, dflash2.rank), source: own.codebooks.predecessors },
      { ...weight('embedding', SUCCESSORS, config.vocab, dflash2.rank), source: own.codebooks.successors },
    );
    const parts = 2 * dflash2.convWidth;
    for (let layer = 0; layer < config.layers; layer++) {
      for (const name of ['attention_conv', 'mlp_conv']) {
        plan.push(
          weight('vector', `layers.${layer}.${name}.base_kernel`, 2, dflash2.convWidth, hidden),
          weight('linear', `layers.${layer}.${name}.kernel_projection.weight`, (parts * hidden) / dflash2.convGroup, hidden),
        );
      }
    }
  }
  for (let layer = 0; layer < config.layers; layer++) {
    const attention = (part: string) => `layers.${layer}.self_attn.${part}`;
    const mlp = (part: string) => `layers.${layer}.mlp.${part}`;
    const biases = config.attentionBias
      ? [
          weight('vector', attention('q_proj.bias'), width),
          weight('vector', attention('k_proj.bias'), kvWidth),
          weight('vector', attention('v_proj.bias'), kvWidth),
          weight('vector', attention('o_proj.bias'), hidden),
        ]
      : [];
    plan.push(
      weight('vector', `layers.${layer}.input_layernorm.weight`, hidden),
      weight('vector', `layers.${layer}.post_attention_layernorm.weight`, hidden),
      weight('linear', attention('q_proj.weight'), width, hidden),
      weight('linear', attention('k_proj.weight'), kvWidth, hidden),
      weight('linear', attention('v_proj.weight'), kvWidth, hidden),
      weight('linear', attention('o_proj.weight'), hidden, width),
      weight('vector', attention('q_norm.weight'), headDim),
      weight('vector', attention('k_norm.weight'), headDim),
      weight('linear', mlp('gate_proj.weight'), intermediate, hidden),
      weight('linear', mlp('up_proj.weight'), intermediate, hidden),
      weight('linear', mlp('down_proj.weight'), hidden, intermediate),
      ...biases,
    );
  }
  return plan;
}

export interface ClaimOptions {
  /** Tensors that are used without being planned. */
  readonly besides?: readonly string[];
  readonly allowUnclaimed?: boolean;
}

/**
 * A tensor that nothing claims was trained for something this drafter would then do without: it would run, and be
 * quietly worse.
 * @throws AppError `incompatible_drafter`
 */
export function refuseUnclaimed(
  checkpoint: Pick<Checkpoint, 'names' | 'has'>,
  plan: readonly PlannedWeight[],
  folder: string,
  { besides = [], allowUnclaimed = false }: ClaimOptions = {},
): void {
  const { missing, unclaimed } = claimTensors(checkpoint, plan, besides);
  if (missing.length > 0) {
    throw new AppError(
      'incompatible_drafter',
      `${folder} lacks ${listNames(missing)}, which a DFlash drafter of this config has`,
    );
  }
  if (unclaimed.length > 0 && !allowUnclaimed) {
    const owner = unclaimed.map(ownerOfTensor).find((found) => found !== null);
    throw new AppError(
      'incompatible_drafter',
      `${folder} has tensors that a DFlash drafter of this config does not: ${listNames(unclaimed)}` +
        `${owner === undefined ? '' : ` (of ${owner}, which is not supported)`}; what they are for is not known, so allow unclaimed ones only if it is nothing`,
    );
  }
}
