/** What a family of decoders adds to the common config. */
import type { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import { ropeFromConfig } from '../../model/rope-config.ts';
import type { AttentionSpec, DecoderSpec } from '../decoder-spec.ts';
import type { HfConfig } from '../hf-config.ts';

/** The parts of a spec that differ between families. */
export type FamilyTraits = Pick<DecoderSpec, 'layers' | 'attention' | 'gatedDelta' | 'normOffset' | 'rope'>;

/**
 * @param where names the config in messages
 * @throws AppError `invalid_checkpoint` naming what is missing or not supported
 */
export type Family = (config: HfConfig, where: string) => FamilyTraits;

/** Sizes of the heads, for an attention without any of the extras. */
export function plainAttention(config: HfConfig): AttentionSpec {
  return {
    heads: config.num_attention_heads,
    kvHeads: config.num_key_value_heads ?? config.num_attention_heads,
    headDim: config.head_dim ?? config.hidden_size / config.num_attention_heads,
    headNorms: false,
    gated: false,
    qkvBias: false,
    outputBias: false,
  };
}

/** A decoder whose layers all see the whole context through one kind of attention. */
export function attentionDecoder(
  config: HfConfig,
  where: string,
  extras: Partial<Pick<AttentionSpec, 'headNorms' | 'qkvBias' | 'outputBias'>>,
  mlpOf: (layer: number) => DecoderSpec['layers'][number]['mlp'],
): FamilyTraits {
  const sliding = config.layer_types?.find((type) => type !== 'full_attention');
  if (config.use_sliding_window || sliding !== undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected full attention in all layers, got ${sliding ?? 'use_sliding_window true'}`,
    );
  }
  const attention = { ...plainAttention(config), ...extras };
  return {
    attention,
    gatedDelta: null,
    normOffset: 0,
    rope: ropeFromConfig(config, attention.headDim, where),
    layers: Array.from({ length: config.num_hidden_layers }, (_, layer) => ({ mixer: 'attention', mlp: mlpOf(layer) })),
  };
}

/** Reads the keys of a config that only one family has. */
export function familyKeys<T>(schema: z.ZodType<T>, config: HfConfig, where: string): T {
  const parsed = schema.safeParse(config);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new AppError(
    'invalid_checkpoint',
    `${where}: ${issue?.path.join('.')}: ${issue?.message}; a model of type ${config.model_type} needs it`,
    { cause: parsed.error },
  );
}
