/** Rotary settings as Hugging Face configs write them, in the form of transformers 4 or 5. */
import { isDeepStrictEqual } from 'node:util';
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

/** Keys of `rope_parameters` and `rope_scaling` that are read, or tell apart axes that are the same in text. */
export const SCALING_KEYS: readonly string[] = [...Object.keys(scalingSchema.shape), 'mrope_section', 'mrope_interleaved'];

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
 * Each setting may stand in several places, of which none wins: a model that is rotated otherwise than it was trained is
 * subtly wrong, and most so in long contexts.
 *
 * @param where names the config in messages
 * @param options.partial whether the model can rotate a part of each head only
 * @throws AppError `invalid_checkpoint` when the base is missing, places contradict each other, or the kind is not supported
 */
export function ropeFromConfig(
  config: RopeConfig,
  headDim: number,
  where: string,
  options: { readonly partial: boolean } = { partial: false },
): RopeSpec {
  const { rope_parameters: parameters, rope_scaling: older } = config;
  for (const [key, object] of Object.entries({ rope_parameters: parameters, rope_scaling: older })) {
    refusePerLayerType(object ?? {}, `${where}: ${key}`);
  }
  const theta = onlyValue('rope_theta', [config, parameters, older], where);
  if (theta === null) {
    throw new AppError(
      'invalid_checkpoint',
      `${where} has no rope_theta (nor rope_parameters.rope_theta); add the value the model was trained with`,
    );
  }
  const part = onlyValue('partial_rotary_factor', [config, parameters, older], where) ?? 1;
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
  const [scaling = { type: 'default' }, other = scaling] = [parameters, older]
    .filter((object) => object !== undefined && object !== null)
    .map((object) => scalingFromConfig(object, config.max_position_embeddings, where));
  if (!isDeepStrictEqual(scaling, other)) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: rope_parameters ask for ${scaling.type} rotary scaling and rope_scaling for ${other.type}, or with other numbers; keep the one it was trained with`,
    );
  }
  return { theta, dims, scaling };
}

/** Some models rotate layers of each type in their own way, and write an object for each. */
function refusePerLayerType(object: Readonly<Record<string, unknown>>, where: string): void {
  const type = Object.keys(object).find((key) => {
    const value = object[key];
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  });
  if (type === undefined) return;
  throw new AppError(
    'invalid_checkpoint',
    `${where} has settings of its own for ${type}; expected one rotary embedding for all layers, as others are not supported`,
  );
}

/** @returns null where no place has it */
function onlyValue(
  key: 'rope_theta' | 'partial_rotary_factor',
  places: readonly (Pick<Scaling, typeof key> | null | undefined)[],
  where: string,
): number | null {
  const values = new Set(places.map((place) => place?.[key]).filter((value) => typeof value === 'number'));
  if (values.size > 1) {
    throw new AppError(
      'invalid_checkpoint',
      `${where}: ${key} is ${[...values].join(' and ')} in two places; keep the one it was trained with`,
    );
  }
  return [...values][0] ?? null;
}

function scalingFromConfig(scaling: Scaling, maxPositions: number, where: string): RopeScaling {
  const type = scalingType(scaling, where);
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

function scalingType({ rope_type, type = rope_type, factor }: Scaling, where: string): string {
  if (rope_type !== undefined && type !== rope_type) {
    throw new AppError('invalid_checkpoint', `${where} asks for rotary scaling of type ${rope_type} and ${type}`);
  }
  if (type === undefined && factor !== undefined) {
    throw new AppError('invalid_checkpoint', `${where} has a factor of rotary scaling without its rope_type; add the type`);
  }
  return type ?? 'default';
}

/** Peng et al. 2023, eq. 22, with the two-parameter form that some checkpoints use. */
function yarnAttentionFactor(factor: number, scaling: Scaling): number {
  const amplitude = (mscale: number) => (factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1);
  if (scaling.mscale && scaling.mscale_all_dim) return amplitude(scaling.mscale) / amplitude(scaling.mscale_all_dim);
  return amplitude(1);
}
