/** Rotary settings as Hugging Face configs write them, in the form of transformers 4 or 5. */
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import type { RopeScaling, RopeSpec } from '../graph/rope.ts';

const scalingSchema = z.looseObject({
  rope_type: z.string().optional(),
  /** The older name of rope_type. */
  type: z.string().optional(),
  rope_theta: z.number().positive().nullish(),
  factor: z.number().positive().optional(),
  low_freq_factor: z.number().positive().optional(),
  high_freq_factor: z.number().positive().optional(),
  original_max_position_embeddings: z.number().int().positive().nullish(),
  attention_factor: z.number().positive().nullish(),
  beta_fast: z.number().positive().nullish(),
  beta_slow: z.number().positive().nullish(),
  mscale: z.number().nullish(),
  mscale_all_dim: z.number().nullish(),
  truncate: z.boolean().nullish(),
  partial_rotary_factor: z.number().positive().nullish(),
});
type Scaling = z.infer<typeof scalingSchema>;

/** The keys of a config that describe rotary embeddings; to be spread into the schema of a whole config. */
export const ropeKeys = {
  rope_theta: z.number().positive().nullish(),
  rope_scaling: scalingSchema.nullish(),
  rope_parameters: scalingSchema.nullish(),
  partial_rotary_factor: z.number().positive().nullish(),
  max_position_embeddings: z.number().int().positive(),
};
const ropeConfigSchema = z.object(ropeKeys);
export type RopeConfig = z.infer<typeof ropeConfigSchema>;

/**
 * @param where names the config in messages
 * @param options.partial whether the model can rotate a part of each head only
 * @throws AppError when the base is missing (guessing one makes a model that is subtly wrong) or the kind is not supported
 */
export function ropeFromConfig(
  config: RopeConfig,
  headDim: number,
  where: string,
  options: { readonly partial: boolean } = { partial: false },
): RopeSpec {
  const scaling = config.rope_parameters ?? config.rope_scaling ?? {};
  const theta = scaling.rope_theta ?? config.rope_theta;
  if (theta === undefined || theta === null) {
    throw new AppError(
      'invalid_checkpoint',
      `${where} has no rope_theta (nor rope_parameters.rope_theta); add the value the model was trained with`,
    );
  }
  const part = scaling.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  if (part !== 1 && !options.partial) {
    throw new AppError(
      'invalid_checkpoint',
      `${where} rotates ${part} of each head; only whole heads are supported for this model`,
    );
  }
  const dims = headDim * part;
  if (dims % 2 !== 0 || dims > headDim) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: expected a partial_rotary_factor that gives an even number of the ${headDim} dimensions of a head, got ${part}`,
    );
  }
  return { theta, dims, scaling: scalingFromConfig(scaling, config.max_position_embeddings, where) };
}

function scalingFromConfig(scaling: Scaling, maxPositions: number, where: string): RopeScaling {
  const type = scaling.rope_type ?? scaling.type ?? 'default';
  const need = <K extends keyof Scaling>(key: K): number => {
    const value = scaling[key];
    if (typeof value === 'number') return value;
    throw new AppError('invalid_checkpoint', `${where} asks for ${type} rotary scaling without ${String(key)}`);
  };
  switch (type) {
    case 'default':
      return { type: 'default' };
    case 'linear':
      return { type: 'linear', factor: need('factor') };
    case 'llama3':
      return {
        type: 'llama3',
        factor: need('factor'),
        lowFrequencyFactor: need('low_freq_factor'),
        highFrequencyFactor: need('high_freq_factor'),
        originalContext: need('original_max_position_embeddings'),
      };
    case 'yarn': {
      const factor = need('factor');
      return {
        type: 'yarn',
        factor,
        originalContext: scaling.original_max_position_embeddings ?? maxPositions,
        betaFast: scaling.beta_fast ?? 32,
        betaSlow: scaling.beta_slow ?? 1,
        attentionFactor: scaling.attention_factor ?? yarnAttentionFactor(factor, scaling),
        truncate: scaling.truncate ?? true,
      };
    }
    default:
      throw new AppError(
        'invalid_checkpoint',
        `${where} asks for rotary scaling of type ${type}; supported are default, linear, llama3 and yarn`,
      );
  }
}

/** Peng et al. 2023, eq. 22, with the two-parameter form that some checkpoints use. */
function yarnAttentionFactor(factor: number, scaling: Scaling): number {
  const amplitude = (mscale: number) => (factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1);
  if (scaling.mscale && scaling.mscale_all_dim) return amplitude(scaling.mscale) / amplitude(scaling.mscale_all_dim);
  return amplitude(1);
}
