/** Reads the config.json and generation_config.json of a Hugging Face folder. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../checkpoint/read-json.ts';
import { AppError } from '../core/app-error.ts';
import type { TokenId } from '../core/token.ts';
import { ropeFromConfig, ropeKeys } from '../model/rope-config.ts';
import type { DecoderSpec } from './decoder-spec.ts';
import type { DenseFamily } from './families/dense-family.ts';
import { llama } from './families/llama.ts';
import { qwen2 } from './families/qwen2.ts';
import { qwen3 } from './families/qwen3.ts';

const FAMILIES: Readonly<Record<string, DenseFamily>> = { llama, qwen2, qwen3 };

const tokenIds = z.union([z.number().int().nonnegative(), z.array(z.number().int().nonnegative())]).nullish();

const configSchema = z.looseObject({
  model_type: z.string(),
  vocab_size: z.number().int().positive(),
  hidden_size: z.number().int().positive(),
  intermediate_size: z.number().int().positive(),
  num_hidden_layers: z.number().int().positive(),
  num_attention_heads: z.number().int().positive(),
  num_key_value_heads: z.number().int().positive().nullish(),
  head_dim: z.number().int().positive().nullish(),
  hidden_act: z.string().nullish(),
  rms_norm_eps: z.number().positive(),
  tie_word_embeddings: z.boolean().nullish(),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  use_sliding_window: z.boolean().nullish(),
  layer_types: z.array(z.string()).nullish(),
  eos_token_id: tokenIds,
  ...ropeKeys,
});
export type HfConfig = z.infer<typeof configSchema>;

const generationSchema = z.looseObject({
  eos_token_id: tokenIds,
  do_sample: z.boolean().nullish(),
  temperature: z.number().nonnegative().nullish(),
  top_p: z.number().positive().max(1).nullish(),
  top_k: z.number().int().nonnegative().nullish(),
  min_p: z.number().min(0).max(1).nullish(),
});

/** Sampling settings that the model's makers suggest. */
export interface SamplingDefaults {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
}

export interface ModelConfig {
  readonly spec: DecoderSpec;
  readonly eosTokenIds: readonly TokenId[];
  readonly samplingDefaults: SamplingDefaults;
}

/** @throws AppError `invalid_checkpoint` naming what is missing or not supported */
export function readModelConfig(folder: string): ModelConfig {
  const file = join(folder, 'config.json');
  const config = readJson(file, configSchema);
  const generationFile = join(folder, 'generation_config.json');
  const generation = existsSync(generationFile) ? readJson(generationFile, generationSchema) : {};
  const eosTokenIds = [...new Set([generation.eos_token_id ?? [], config.eos_token_id ?? []].flat())];
  return { spec: toSpec(config, file), eosTokenIds, samplingDefaults: samplingDefaults(generation) };
}

function toSpec(config: HfConfig, file: string): DecoderSpec {
  const family = FAMILIES[config.model_type];
  if (family === undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `${file}: model_type ${config.model_type} is not supported; supported are ${Object.keys(FAMILIES).join(', ')}`,
    );
  }
  if (config.hidden_act !== undefined && config.hidden_act !== null && config.hidden_act !== 'silu') {
    throw new AppError('invalid_checkpoint', `${file}: expected hidden_act silu, got ${config.hidden_act}`);
  }
  const sliding = config.layer_types?.find((type) => type !== 'full_attention');
  if (config.use_sliding_window || sliding !== undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `${file}: expected full attention in all layers, got ${sliding ?? 'use_sliding_window true'}`,
    );
  }
  const headDim = config.head_dim ?? config.hidden_size / config.num_attention_heads;
  return {
    family: config.model_type,
    vocab: config.vocab_size,
    hidden: config.hidden_size,
    intermediate: config.intermediate_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    kvHeads: config.num_key_value_heads ?? config.num_attention_heads,
    headDim,
    normEpsilon: config.rms_norm_eps,
    rope: ropeFromConfig(config, headDim, file),
    maxPositions: config.max_position_embeddings,
    tiedHead: config.tie_word_embeddings ?? false,
    ...family(config),
  };
}

function samplingDefaults(generation: z.infer<typeof generationSchema>): SamplingDefaults {
  if (generation.do_sample === false) return { temperature: 0 };
  return {
    ...(typeof generation.temperature === 'number' ? { temperature: generation.temperature } : {}),
    ...(typeof generation.top_p === 'number' ? { topP: generation.top_p } : {}),
    ...(typeof generation.top_k === 'number' ? { topK: generation.top_k } : {}),
    ...(typeof generation.min_p === 'number' ? { minP: generation.min_p } : {}),
  };
}
