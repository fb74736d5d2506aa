/** DFlash folders with the smallest of shapes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FixtureTensor, f32, safetensors, temporaryFolder, weights } from '../checkpoint/checkpoint-fixture.ts';

export const HIDDEN = 8;
export const VOCAB = 40;
export const TARGET_LAYERS = 4;
const INTERMEDIATE = 16;
const HEAD_DIM = 4;
const HEADS = 2;
const KV_HEADS = 1;

/** One layer, two taps, a block of four. */
export const CONFIG = {
  architectures: ['DFlashDraftModel'],
  model_type: 'qwen3',
  hidden_act: 'silu',
  hidden_size: HIDDEN,
  intermediate_size: INTERMEDIATE,
  num_hidden_layers: 1,
  num_attention_heads: HEADS,
  num_key_value_heads: KV_HEADS,
  head_dim: HEAD_DIM,
  vocab_size: VOCAB,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  max_position_embeddings: 64,
  num_target_layers: TARGET_LAYERS,
  block_size: 4,
  dflash_config: { mask_token_id: 1, target_layer_ids: [0, 2] },
};

/** The same drafter in the other layout. */
export const SPECULATORS_CONFIG = {
  architectures: ['DFlashDraftModel'],
  speculators_model_type: 'dflash',
  speculators_version: '0.9.0',
  aux_hidden_state_layer_ids: [1, 3],
  block_size: 4,
  mask_token_id: 1,
  draft_vocab_size: VOCAB,
  target_hidden_size: null,
  sample_from_anchor: false,
  sliding_window_non_causal: false,
  transformer_layer_config: {
    model_type: 'qwen3',
    hidden_act: 'silu',
    hidden_size: HIDDEN,
    intermediate_size: INTERMEDIATE,
    num_hidden_layers: 1,
    num_attention_heads: HEADS,
    num_key_value_heads: KV_HEADS,
    head_dim: HEAD_DIM,
    vocab_size: VOCAB,
    rms_norm_eps: 1e-6,
    rope_parameters: { rope_theta: 10_000, rope_type: 'default' },
    max_position_embeddings: 64,
  },
};

export function tensors(taps = 2): Record<string, FixtureTensor> {
  const tensor = (...shape: number[]) => f32(shape, weights(shape.reduce((a, b) => a * b, 1)));
  const layer = 'layers.0';
  return {
    'fc.weight': tensor(HIDDEN, taps * HIDDEN),
    'hidden_norm.weight': tensor(HIDDEN),
    'norm.weight': tensor(HIDDEN),
    [`${layer}.input_layernorm.weight`]: tensor(HIDDEN),
    [`${layer}.post_attention_layernorm.weight`]: tensor(HIDDEN),
    [`${layer}.self_attn.q_proj.weight`]: tensor(HEADS * HEAD_DIM, HIDDEN),
    [`${layer}.self_attn.k_proj.weight`]: tensor(KV_HEADS * HEAD_DIM, HIDDEN),
    [`${layer}.self_attn.v_proj.weight`]: tensor(KV_HEADS * HEAD_DIM, HIDDEN),
    [`${layer}.self_attn.o_proj.weight`]: tensor(HIDDEN, HEADS * HEAD_DIM),
    [`${layer}.self_attn.q_norm.weight`]: tensor(HEAD_DIM),
    [`${layer}.self_attn.k_norm.weight`]: tensor(HEAD_DIM),
    [`${layer}.mlp.gate_proj.weight`]: tensor(INTERMEDIATE, HIDDEN),
    [`${layer}.mlp.up_proj.weight`]: tensor(INTERMEDIATE, HIDDEN),
    [`${layer}.mlp.down_proj.weight`]: tensor(HIDDEN, INTERMEDIATE),
  };
}

/** A folder that is removed after the test. */
export async function dflashFolder(
  config: object = CONFIG,
  contents: Record<string, FixtureTensor> = tensors(),
): Promise<string> {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  await writeFile(join(folder, 'model.safetensors'), safetensors(contents));
  return folder;
}
