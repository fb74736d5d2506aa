import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import { ropeFromConfig } from '../../model/rope-config.ts';
import type { LayerSpec } from '../decoder-spec.ts';
import type { HfConfig } from '../hf-config.ts';
import { type Family, familyKeys, plainAttention } from './family.ts';

const count = z.number().int().positive();
const hybridKeys = z.object({
  linear_num_key_heads: count,
  linear_num_value_heads: count,
  linear_key_head_dim: count,
  linear_value_head_dim: count,
  linear_conv_kernel_dim: count,
  full_attention_interval: count.nullish(),
  attn_output_gate: z.boolean().nullish(),
  output_gate_type: z.string().nullish(),
});

/** Layer types of configs that give a rule in place of a list. */
const DEFAULT_INTERVAL = 4;

/**
 * Text models of Qwen 3.5 and 3.6: gated DeltaNet in most layers, gated attention in every few, rotation of a part of
 * each head, norms that store their distance from 1.
 */
export const qwen35: Family = (config, where) => {
  const keys = familyKeys(hybridKeys, config, where);
  if (keys.output_gate_type !== undefined && keys.output_gate_type !== null) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected no output_gate_type, as no model of this type has one, got ${keys.output_gate_type}; what it changes is not known here`,
    );
  }
  if (keys.linear_num_value_heads % keys.linear_num_key_heads !== 0) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected linear_num_value_heads as a multiple of linear_num_key_heads, ${keys.linear_num_key_heads}, got ${keys.linear_num_value_heads}`,
    );
  }
  const bias = config.attention_bias ?? false;
  const attention = {
    ...plainAttention(config),
    headNorms: true,
    gated: keys.attn_output_gate ?? true,
    qkvBias: bias,
    outputBias: bias,
  };
  const mlp = { kind: 'dense', intermediate: config.intermediate_size, bias: false } as const;
  return {
    attention,
    gatedDelta: {
      keyHeads: keys.linear_num_key_heads,
      valueHeads: keys.linear_num_value_heads,
      keyDim: keys.linear_key_head_dim,
      valueDim: keys.linear_value_head_dim,
      convWidth: keys.linear_conv_kernel_dim,
    },
    normOffset: 1,
    rope: ropeFromConfig(config, attention.headDim, where, { partial: true }),
    layers: mixers(config, keys.full_attention_interval ?? DEFAULT_INTERVAL, where).map((mixer) => ({ mixer, mlp })),
  };
};

function mixers(config: HfConfig, interval: number, where: string): LayerSpec['mixer'][] {
  const layers = config.num_hidden_layers;
  const types =
    config.layer_types ??
    Array.from({ length: layers }, (_, layer) => ((layer + 1) % interval === 0 ? 'full_attention' : 'linear_attention'));
  if (types.length !== layers) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected ${layers} layer_types, one for each layer, got ${types.length}`,
    );
  }
  const kinds = types.map((type) => {
    if (type === 'linear_attention') return 'gated-delta';
    if (type === 'full_attention') return 'attention';
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected layer_types of linear_attention or full_attention, got ${type}`,
    );
  });
  if (new Set(kinds).size === 2) return kinds;
  throw new AppError('invalid_checkpoint', `${where}: expected layers of both types, got ${types[0]} only`);
}
