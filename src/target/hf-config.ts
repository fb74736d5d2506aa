/** Reads the config.json and generation_config.json of a Hugging Face folder. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../checkpoint/read-json.ts';
import { AppError } from '../core/app-error.ts';
import type { TokenId } from '../core/token.ts';
import { ropeKeys } from '../model/rope-config.ts';
import type { DecoderSpec } from './decoder-spec.ts';
import type { Family } from './families/family.ts';
import { llama } from './families/llama.ts';
import { qwen2 } from './families/qwen2.ts';
import { qwen3 } from './families/qwen3.ts';
import { qwen35 } from './families/qwen3-5.ts';
import { qwen3Moe } from './families/qwen3-moe.ts';

const FAMILIES: Readonly<Record<string, Family>> = {
  llama,
  qwen2,
  qwen3,
  qwen3_moe: qwen3Moe,
  qwen3_5_text: qwen35,
  qwen3_6_text: qwen35,
};

/** Models of text and images, by the type of their text part. */
const WRAPPERS: Readonly<Record<string, string>> = { qwen3_5: 'qwen3_5_text', qwen3_6: 'qwen3_6_text' };

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

/** A wrapper's own keys hold for its text part, too, where that has none. */
const wrapperSchema = z.looseObject({
  model_type: z.string(),
  tie_word_embeddings: z.boolean().nullish(),
  eos_token_id: tokenIds,
  text_config: configSchema.partial({ model_type: true }),
});

/** What decides how the rest of a config is read. */
const kindSchema = z.looseObject({ model_type: z.string(), text_config: z.unknown().optional() });

/** A drafter's config, which often has the `model_type` of the model that its layers are of. */
const drafterSchema = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  speculators_model_type: z.string().nullish(),
});

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
  const { config, family, weightPrefix } = readTextConfig(file);
  const generationFile = join(folder, 'generation_config.json');
  const generation = existsSync(generationFile) ? readJson(generationFile, generationSchema) : {};
  const eosTokenIds = [...new Set([generation.eos_token_id ?? [], config.eos_token_id ?? []].flat())];
  return { spec: toSpec(config, family, weightPrefix, file), eosTokenIds, samplingDefaults: samplingDefaults(generation) };
}

interface TextConfig {
  readonly config: HfConfig;
  readonly family: Family;
  readonly weightPrefix: string;
}

function refuseDrafter(file: string): void {
  const { architectures, speculators_model_type: speculators } = readJson(file, drafterSchema);
  const drafter = architectures?.find((name) => /Draft|Speculator/.test(name)) ?? speculators ?? null;
  if (drafter === null) return;
  throw new AppError(
    'invalid_checkpoint',
    `${file}: expected the config of a model, got that of a drafter, ${drafter}; name its target here, and the drafter with --drafter`,
  );
}

/** The config of a text model, or of the text part of a model of text and images. */
function readTextConfig(file: string): TextConfig {
  refuseDrafter(file);
  const { model_type: type, text_config: inner } = readJson(file, kindSchema);
  const textType = WRAPPERS[type];
  const family = FAMILIES[textType ?? type];
  if (family === undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `${file}: model_type ${type} is not supported; supported are ${[...Object.keys(FAMILIES), ...Object.keys(WRAPPERS)].join(', ')}`,
    );
  }
  if (textType === undefined) return { config: readJson(file, configSchema), family, weightPrefix: 'model' };
  if (inner === undefined) {
    throw new AppError(
      'invalid_checkpoint',
      `${file}: expected a text_config, as model_type ${type} is one of text and images, got none; a text model alone has model_type ${textType}`,
    );
  }
  const { text_config: text, ...outer } = readJson(file, wrapperSchema);
  if (text.model_type !== undefined && text.model_type !== textType) {
    throw new AppError('invalid_checkpoint', `${file}: expected text_config.model_type ${textType}, got ${text.model_type}`);
  }
  const config = {
    ...text,
    model_type: type,
    tie_word_embeddings: outer.tie_word_embeddings ?? text.tie_word_embeddings,
    eos_token_id: [outer.eos_token_id ?? [], text.eos_token_id ?? []].flat(),
  };
  return { config, family, weightPrefix: 'model.language_model' };
}

function toSpec(config: HfConfig, family: Family, weightPrefix: string, file: string): DecoderSpec {
  if (config.hidden_act !== undefined && config.hidden_act !== null && config.hidden_act !== 'silu') {
    throw new AppError('invalid_checkpoint', `${file}: expected hidden_act silu, got ${config.hidden_act}`);
  }
  return {
    family: config.model_type,
    vocab: config.vocab_size,
    hidden: config.hidden_size,
    normEpsilon: config.rms_norm_eps,
    maxPositions: config.max_position_embeddings,
    tiedHead: config.tie_word_embeddings ?? false,
    weightPrefix,
    ...family(config, file),
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
