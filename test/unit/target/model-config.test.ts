import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/app-error.ts';
import type { DecoderSpec } from '../../../src/target/decoder-spec.ts';
import { planDecoderWeights } from '../../../src/target/decoder-weights.ts';
import { readModelConfig } from '../../../src/target/hf-config.ts';

const FIXTURES = join(import.meta.dirname, '../../golden/fixtures');
type Config = Record<string, unknown>;

let folder: string;
let mixture: Config;
let text: Config;
let nested: Config & { text_config: Config };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'blockdraft-test-'));
  const read = async (name: string) => JSON.parse(await readFile(join(FIXTURES, name, 'config.json'), 'utf8'));
  [mixture, text, nested] = await Promise.all([read('qwen3-moe'), read('qwen3_5-text'), read('qwen3_5-nested')]);
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function specOf(config: Config): Promise<DecoderSpec> {
  await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  return readModelConfig(folder).spec;
}

async function refusal(config: Config): Promise<string> {
  const error = await specOf(config).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AppError);
  expect((error as AppError).code).toBe('invalid_checkpoint');
  return (error as AppError).message;
}

describe('a qwen3_moe config', () => {
  it('makes mixtures of all layers, by either name of the number of experts', async () => {
    const spec = await specOf(mixture);
    expect(spec.layers).toEqual(
      Array.from({ length: 6 }, () => ({
        mixer: 'attention',
        mlp: { kind: 'mixture', intermediate: 32, experts: 4, expertsPerToken: 2, normaliseShares: true },
      })),
    );
    const { num_experts, ...renamed } = mixture;
    expect(await specOf({ ...renamed, num_local_experts: num_experts })).toEqual(spec);
  });

  it('keeps layers dense that are named, or fall out of step', async () => {
    const kinds = async (keys: Config) => (await specOf({ ...mixture, ...keys })).layers.map(({ mlp }) => mlp.kind[0]).join('');
    expect(await kinds({ mlp_only_layers: [0, 4] })).toBe('dmmmdm');
    expect(await kinds({ decoder_sparse_step: 2 })).toBe('dmdmdm');
    expect(await kinds({ decoder_sparse_step: 3, mlp_only_layers: [5] })).toBe('ddmddd');
    const dense = (await specOf({ ...mixture, mlp_only_layers: [0] })).layers[0]!.mlp;
    expect(dense).toEqual({ kind: 'dense', intermediate: 128, bias: false });
  });

  it('plans the router in f32, whatever the format, and each expert', async () => {
    const plan = planDecoderWeights(await specOf(mixture));
    const router = plan.find(({ name }) => name === 'model.layers.3.mlp.gate.weight');
    expect(router).toMatchObject({ kind: 'exact', shape: [4, 64] });
    const experts = plan.filter(({ name }) => /^model\.layers\.3\.mlp\.experts\.\d\./.test(name));
    expect(experts.map(({ kind }) => kind)).toEqual(new Array(12).fill('linear'));
  });

  it('is refused without the number of experts, or with fewer than a token needs', async () => {
    const { num_experts, ...without } = mixture;
    expect(await refusal(without)).toContain('expected num_experts of at least num_experts_per_tok, 2, got none');
    expect(await refusal({ ...mixture, num_experts: 1 })).toContain('got 1');
    const { norm_topk_prob, ...unclear } = mixture;
    expect(await refusal(unclear)).toContain('norm_topk_prob');
  });
});

describe('a qwen3_5_text config', () => {
  it('tells both kinds of layers, the rotated part of a head, and norms that are stored as distances from 1', async () => {
    const spec = await specOf(text);
    const mixers = spec.layers.map(({ mixer }) => mixer);
    expect(mixers).toEqual(Array.from({ length: 8 }, (_, i) => (i % 4 === 3 ? 'attention' : 'gated-delta')));
    expect(spec).toMatchObject({
      family: 'qwen3_5_text',
      weightPrefix: 'model',
      normOffset: 1,
      rope: { theta: 1e7, dims: 8, scaling: { type: 'default' } },
      attention: { heads: 4, kvHeads: 2, headDim: 32, headNorms: true, gated: true, qkvBias: false, outputBias: false },
      gatedDelta: { keyHeads: 2, valueHeads: 4, keyDim: 16, valueDim: 16, convWidth: 4 },
    });
  });

  it('may give the distance of attention layers in place of a list', async () => {
    const { layer_types, full_attention_interval, ...bare } = text;
    expect(await specOf({ ...bare, full_attention_interval: 4 })).toEqual(await specOf(text));
    expect(await specOf(bare)).toEqual(await specOf(text));
    const spec = await specOf({ ...bare, full_attention_interval: 2 });
    expect(spec.layers.map(({ mixer }) => mixer[0]).join('')).toBe('gagagaga');
  });

  it('keeps the gates, the convolution and the norms from being quantised', async () => {
    const plan = planDecoderWeights(await specOf(text));
    const kinds = Object.fromEntries(
      plan
        .filter(({ name }) => name.startsWith('model.layers.0.linear_attn.'))
        .map(({ name, kind }) => [name.slice('model.layers.0.linear_attn.'.length), kind]),
    );
    expect(kinds).toEqual({
      'in_proj_qkv.weight': 'linear',
      'in_proj_z.weight': 'linear',
      'out_proj.weight': 'linear',
      'in_proj_a.weight': 'exact',
      'in_proj_b.weight': 'exact',
      'conv1d.weight': 'exact',
      'norm.weight': 'exact',
      A_log: 'exact',
      dt_bias: 'exact',
    });
  });

  it('is refused with layers it does not know, or keys whose meaning is not known', async () => {
    const types = text['layer_types'] as string[];
    expect(await refusal({ ...text, layer_types: types.slice(1) })).toContain(
      'expected 8 layer_types, one for each layer, got 7',
    );
    const other = ['mamba', ...types.slice(1)];
    expect(await refusal({ ...text, layer_types: other })).toContain('linear_attention or full_attention, got mamba');
    const same = types.map(() => 'linear_attention');
    expect(await refusal({ ...text, layer_types: same })).toContain('layers of both types, got linear_attention only');
    expect(await refusal({ ...text, output_gate_type: 'swish' })).toContain('output_gate_type');
    expect(await refusal({ ...text, linear_num_value_heads: 3 })).toContain('a multiple of linear_num_key_heads, 2, got 3');
    const { linear_conv_kernel_dim, ...unclear } = text;
    expect(await refusal(unclear)).toContain('linear_conv_kernel_dim');
    const rope = { ...(text['rope_parameters'] as Config), partial_rotary_factor: 0.1 };
    expect(await refusal({ ...text, rope_parameters: rope })).toContain(
      'an even number of the 32 dimensions of a head, got 0.1',
    );
  });
});

describe('the config of a model of text and images', () => {
  it('describes its text part, whose weights stand under a longer name', async () => {
    const { weightPrefix, family, ...spec } = await specOf(nested);
    expect({ weightPrefix, family }).toEqual({ weightPrefix: 'model.language_model', family: 'qwen3_5' });
    const { weightPrefix: _, family: __, ...alone } = await specOf(text);
    expect(spec).toEqual(alone);
  });

  it('names a tied head once for both parts, and end tokens in either', async () => {
    const { tie_word_embeddings, ...inner } = nested.text_config;
    const tied = { ...nested, tie_word_embeddings: true, eos_token_id: 7, text_config: { ...inner, eos_token_id: [7, 9] } };
    expect((await specOf(tied)).tiedHead).toBe(true);
    expect(readModelConfig(folder).eosTokenIds).toEqual([7, 9]);
  });

  it('is refused without its text part, or with that of another model', async () => {
    const { text_config, ...without } = nested;
    expect(await refusal(without)).toContain('expected a text_config');
    const other = { ...nested, text_config: { ...nested.text_config, model_type: 'qwen3' } };
    expect(await refusal(other)).toContain('expected text_config.model_type qwen3_5_text, got qwen3');
    expect(await refusal({ ...nested, model_type: 'qwen3_5_moe' })).toContain(
      'model_type qwen3_5_moe is not supported; supported are llama, qwen2, qwen3, qwen3_moe, qwen3_5_text, qwen3_6_text, qwen3_5, qwen3_6',
    );
  });
});
