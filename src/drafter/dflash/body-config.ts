/** The keys that describe the layers of a DFlash drafter, which both layouts have in common. */
import { z } from 'zod';
import type { AppError } from '../../core/app-error.ts';
import type { RopeSpec } from '../../graph/rope.ts';
import { ropeFromConfig, ropeKeys } from '../../model/rope-config.ts';
import type { LayerAttention } from './dflash-config.ts';

export interface DflashBody {
  readonly hidden: number;
  readonly intermediate: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Rows of the embedding table. */
  readonly vocab: number;
  readonly normEpsilon: number;
  readonly rope: RopeSpec;
  /** Queries, keys, values and outputs have biases. */
  readonly attentionBias: boolean;
  readonly attention: readonly LayerAttention[];
}

export const bodyKeys = {
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
  mlp_bias: z.literal(false).nullish(),
  layer_types: z.array(z.enum(['full_attention', 'sliding_attention'])).nullish(),
  sliding_window: z.number().int().positive().nullish(),
  use_sliding_window: z.boolean().nullish(),
  max_window_layers: z.number().int().nonnegative().nullish(),
  ...ropeKeys,
};
const bodySchema = z.looseObject(bodyKeys);
export type RawBody = z.infer<typeof bodySchema>;

/** Whether a layer of a type is causal in the block. */
export type CausalOf = (type: 'full_attention' | 'sliding_attention') => boolean;

/** @param where names the config in messages */
export function bodyFromConfig(
  raw: RawBody,
  causalOf: CausalOf,
  where: string,
  refuse: (message: string) => AppError,
): DflashBody {
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
  return {
    hidden: raw.hidden_size,
    intermediate: raw.intermediate_size,
    layers: raw.num_hidden_layers,
    heads: raw.num_attention_heads,
    kvHeads: raw.num_key_value_heads,
    headDim,
    vocab: raw.vocab_size,
    normEpsilon: raw.rms_norm_eps,
    rope: ropeFromConfig(raw, headDim, where),
    attentionBias: raw.attention_bias ?? false,
    attention: layerAttention(raw, causalOf, refuse),
  };
}

function layerAttention(raw: RawBody, causalOf: CausalOf, refuse: (message: string) => AppError): LayerAttention[] {
  const types = raw.layer_types ?? defaultTypes(raw, refuse);
  if (types.length !== raw.num_hidden_layers) {
    throw refuse(`expected ${raw.num_hidden_layers} layer_types, as num_hidden_layers says, got ${types.length}`);
  }
  return types.map((type) => {
    if (type === 'full_attention') return { causal: causalOf(type), window: null };
    if (raw.use_sliding_window === false || !raw.sliding_window) {
      throw refuse('layer_types has sliding_attention, but sliding_window is not set or use_sliding_window is false');
    }
    return { causal: causalOf(type), window: raw.sliding_window };
  });
}

/** As transformers' config of Qwen 3 fills them in: the window is of the layers above a number of them. */
function defaultTypes(raw: RawBody, refuse: (message: string) => AppError): NonNullable<RawBody['layer_types']> {
  const types = Array.from({ length: raw.num_hidden_layers }, () => 'full_attention' as const);
  if (!raw.use_sliding_window || !raw.sliding_window) return types;
  const { max_window_layers: full } = raw;
  if (full === undefined || full === null) {
    throw refuse(
      'use_sliding_window is true, but neither layer_types nor max_window_layers say of which layers; add layer_types',
    );
  }
  return types.map((type, layer) => (layer < full ? type : 'sliding_attention'));
}
