/** Reads the config.json of a DFlash drafter in z-lab's layout. */
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../checkpoint/read-json.ts';
import { AppError } from '../../core/app-error.ts';
import type { TokenId } from '../../core/token.ts';
import type { RopeSpec } from '../../graph/rope.ts';
import { ropeFromConfig, ropeKeys } from '../../model/rope-config.ts';

export interface DflashConfig {
  readonly hidden: number;
  readonly intermediate: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly vocab: number;
  readonly normEpsilon: number;
  readonly rope: RopeSpec;
  readonly attentionBias: boolean;
  /** Slots of a block, the anchor's included. */
  readonly blockSize: number;
  readonly maskTokenId: TokenId;
  /** Tapped target layers, in the order in which `fc` takes them; id i is the output of layer i. */
  readonly taps: readonly number[];
  /** Depth of the target that it was trained for. */
  readonly targetLayers: number;
  /** How each layer's block rows see the context and each other. */
  readonly attention: readonly LayerAttention[];
  readonly inputEmbeddingScale: number;
  readonly outputMultiplier: number;
  /** c in c · tanh(logit / c); null: none. */
  readonly logitSoftcap: number | null;
}

export interface LayerAttention {
  /** True: a slot sees itself and those before it; false: the whole block. */
  readonly causal: boolean;
  /** Positions that a slot may look back, itself included; null: all. */
  readonly window: number | null;
}

const dflashSchema = z.strictObject({
  mask_token_id: z.number().int().nonnegative().optional(),
  target_layer_ids: z.array(z.number().int()).min(1).optional(),
  block_size: z.number().int().min(2).optional(),
  causal: z.boolean().nullish(),
  input_embedding_scale: z.number().nullish(),
  output_multiplier: z.number().nullish(),
  final_logit_softcapping: z.number().positive().nullish(),
});

const formatSchema = z.looseObject({ speculators_model_type: z.string().optional() });

const configSchema = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  hidden_size: z.number().int().positive(),
  intermediate_size: z.number().int().positive(),
  num_hidden_layers: z.number().int().positive(),
  num_attention_heads: z.number().int().positive(),
  num_key_value_heads: z.number().int().positive(),
  head_dim: z.number().int().positive().nullish(),
  hidden_act: z.string().nullish(),
  vocab_size: z.number().int().positive(),
  rms_norm_eps: z.number().positive(),
  attention_bias: z.boolean().nullish(),
  num_target_layers: z.number().int().positive(),
  layer_types: z.array(z.enum(['full_attention', 'sliding_attention'])).nullish(),
  sliding_window: z.number().int().positive().nullish(),
  use_sliding_window: z.boolean().nullish(),
  is_causal: z.boolean().nullish(),
  block_size: z.number().int().min(2).optional(),
  mask_token_id: z.number().int().nonnegative().optional(),
  target_layer_ids: z.array(z.number().int()).min(1).optional(),
  input_embedding_scale: z.number().nullish(),
  output_multiplier: z.number().nullish(),
  final_logit_softcapping: z.number().positive().nullish(),
  dflash_config: dflashSchema.optional(),
  ...ropeKeys,
});
type RawConfig = z.infer<typeof configSchema>;

/** @throws AppError `invalid_checkpoint` naming what is missing, contradictory or of another format */
export function readDflashConfig(folder: string): DflashConfig {
  const file = join(folder, 'config.json');
  refuseSpeculators(readJson(file, formatSchema), file);
  return toConfig(readJson(file, configSchema), file);
}

/** Before anything else is looked for: that format keeps the sizes elsewhere, and to miss one of them would say nothing. */
function refuseSpeculators({ speculators_model_type: type }: z.infer<typeof formatSchema>, file: string): void {
  if (type === undefined) return;
  throw new AppError(
    'invalid_checkpoint',
    `${file}: this is a speculators checkpoint (${type}), whose layer ids mean other layers; only z-lab's layout is supported`,
  );
}

function toConfig(raw: RawConfig, file: string): DflashConfig {
  const refuse = (message: string) => new AppError('invalid_checkpoint', `${file}: ${message}`);
  if (!raw.architectures?.includes('DFlashDraftModel')) {
    throw refuse(`expected architectures ["DFlashDraftModel"], got ${JSON.stringify(raw.architectures ?? null)}`);
  }
  if (raw.hidden_act !== undefined && raw.hidden_act !== null && raw.hidden_act !== 'silu') {
    throw refuse(`expected hidden_act silu, got ${raw.hidden_act}`);
  }
  const headDim = raw.head_dim ?? raw.hidden_size / raw.num_attention_heads;
  if (!Number.isInteger(headDim)) {
    throw refuse(`expected a hidden_size ${raw.hidden_size} that num_attention_heads ${raw.num_attention_heads} divides`);
  }
  if (raw.num_attention_heads % raw.num_key_value_heads !== 0) {
    throw refuse(
      `expected num_attention_heads ${raw.num_attention_heads} to be a multiple of num_key_value_heads, got ${raw.num_key_value_heads}`,
    );
  }
  const blockSize = eitherPlace(raw, 'block_size', refuse);
  const maskTokenId = eitherPlace(raw, 'mask_token_id', refuse);
  const taps = eitherPlace(raw, 'target_layer_ids', refuse);
  if (maskTokenId >= raw.vocab_size) {
    throw refuse(`expected a mask_token_id below vocab_size ${raw.vocab_size}, got ${maskTokenId}`);
  }
  const outside = taps.find((tap) => tap < 0 || tap >= raw.num_target_layers);
  if (outside !== undefined) {
    throw refuse(
      `expected target_layer_ids of 0 to ${raw.num_target_layers - 1} (num_target_layers ${raw.num_target_layers}), got ${outside}`,
    );
  }
  if (taps.includes(raw.num_target_layers - 1)) {
    throw refuse(
      `target_layer_ids taps the last layer (${raw.num_target_layers - 1}), whose output exists before and after the final norm; ` +
        `which one was trained on is not recorded, so this drafter is refused`,
    );
  }
  return {
    hidden: raw.hidden_size,
    intermediate: raw.intermediate_size,
    layers: raw.num_hidden_layers,
    heads: raw.num_attention_heads,
    kvHeads: raw.num_key_value_heads,
    headDim,
    vocab: raw.vocab_size,
    normEpsilon: raw.rms_norm_eps,
    rope: ropeFromConfig(raw, headDim, file),
    attentionBias: raw.attention_bias ?? false,
    blockSize,
    maskTokenId,
    taps,
    targetLayers: raw.num_target_layers,
    attention: layerAttention(raw, refuse),
    inputEmbeddingScale: raw.dflash_config?.input_embedding_scale ?? raw.input_embedding_scale ?? 1,
    outputMultiplier: raw.dflash_config?.output_multiplier ?? raw.output_multiplier ?? 1,
    logitSoftcap: raw.dflash_config?.final_logit_softcapping ?? raw.final_logit_softcapping ?? null,
  };
}

type PlacedKey = 'block_size' | 'mask_token_id' | 'target_layer_ids';

/** Older checkpoints have these keys at the top level, newer ones in `dflash_config`; a guess would make a bad drafter silently. */
function eitherPlace<K extends PlacedKey>(
  raw: RawConfig,
  key: K,
  refuse: (message: string) => AppError,
): NonNullable<RawConfig[K]> {
  const inner = raw.dflash_config?.[key];
  const outer = raw[key];
  if (inner !== undefined && outer !== undefined && JSON.stringify(inner) !== JSON.stringify(outer)) {
    throw refuse(
      `${key} is ${JSON.stringify(inner)} in dflash_config and ${JSON.stringify(outer)} at the top level; keep the one it was trained with`,
    );
  }
  const value = inner ?? outer;
  if (value === undefined) throw refuse(`expected ${key} in dflash_config or at the top level, found neither`);
  return value as NonNullable<RawConfig[K]>;
}

/** `is_causal` holds for all layers; without it, sliding layers are causal in the block and full layers are not. */
function layerAttention(raw: RawConfig, refuse: (message: string) => AppError): LayerAttention[] {
  const types = raw.layer_types ?? Array.from({ length: raw.num_hidden_layers }, () => 'full_attention' as const);
  if (types.length !== raw.num_hidden_layers) {
    throw refuse(`expected ${raw.num_hidden_layers} layer_types, as num_hidden_layers says, got ${types.length}`);
  }
  const causal = raw.is_causal ?? raw.dflash_config?.causal ?? null;
  return types.map((type) => {
    if (type === 'full_attention') return { causal: causal ?? false, window: null };
    if (raw.use_sliding_window === false || !raw.sliding_window) {
      throw refuse('layer_types has sliding_attention, but sliding_window is not set or use_sliding_window is false');
    }
    return { causal: causal ?? true, window: raw.sliding_window };
  });
}
