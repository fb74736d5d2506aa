import { describe, expect, it } from 'vitest';
import { readDflashConfig } from '../../../src/drafter/dflash/dflash-config.ts';
import { CONFIG, dflashFolder } from './dflash-fixture.ts';

const inner = CONFIG.dflash_config;

describe('the config of a DFlash drafter', () => {
  it('is read as z-lab writes it', async () => {
    expect(readDflashConfig(await dflashFolder())).toEqual({
      layout: 'z-lab',
      hidden: 8,
      intermediate: 16,
      layers: 1,
      heads: 2,
      kvHeads: 1,
      headDim: 4,
      vocab: 40,
      normEpsilon: 1e-6,
      rope: { theta: 10_000, dims: 4, scaling: { type: 'default' } },
      attentionBias: false,
      blockSize: 4,
      maskTokenId: 1,
      draftsFromAnchor: false,
      taps: [0, 2],
      tapsAssumed: false,
      finalTap: null,
      targetHidden: 8,
      targetLayers: 4,
      draftVocab: 40,
      attention: [{ causal: false, window: null }],
      inputEmbeddingScale: 1,
      outputMultiplier: 1,
      logitSoftcap: null,
      dflash2: null,
    });
  });

  it('has the block, the mask and the taps at the top level or in dflash_config', async () => {
    const { dflash_config: _, block_size: __, ...rest } = CONFIG;
    const outer = readDflashConfig(await dflashFolder({ ...rest, block_size: 5, mask_token_id: 3, target_layer_ids: [1] }));
    expect(outer).toMatchObject({ blockSize: 5, maskTokenId: 3, taps: [1] });
    const within = { mask_token_id: 3, target_layer_ids: [1], block_size: 5 };
    expect(readDflashConfig(await dflashFolder({ ...rest, dflash_config: within }))).toMatchObject({
      blockSize: 5,
      maskTokenId: 3,
      draftsFromAnchor: false,
      taps: [1],
    });
    const both = { ...CONFIG, dflash_config: { ...inner, block_size: 4 } };
    expect(readDflashConfig(await dflashFolder(both)).blockSize).toBe(4);
  });

  it('keeps the order of the taps, in which fc takes them', async () => {
    const config = { ...CONFIG, dflash_config: { ...inner, target_layer_ids: [2, 0] } };
    expect(readDflashConfig(await dflashFolder(config)).taps).toEqual([2, 0]);
  });

  it('has factors that act on embeddings and logits', async () => {
    const config = {
      ...CONFIG,
      output_multiplier: 2,
      dflash_config: { ...inner, input_embedding_scale: 3, final_logit_softcapping: 30 },
    };
    expect(readDflashConfig(await dflashFolder(config))).toMatchObject({
      inputEmbeddingScale: 3,
      outputMultiplier: 2,
      logitSoftcap: 30,
    });
  });

  const sliding = { num_hidden_layers: 2, layer_types: ['sliding_attention', 'full_attention'], sliding_window: 16 };
  it.each([
    {
      title: 'sliding layers causal in the block and full ones not',
      config: sliding,
      attention: [
        { causal: true, window: 16 },
        { causal: false, window: null },
      ],
    },
    {
      title: 'layers above max_window_layers sliding where no types are given',
      config: { ...sliding, layer_types: undefined, use_sliding_window: true, max_window_layers: 1 },
      attention: [
        { causal: false, window: null },
        { causal: true, window: 16 },
      ],
    },
    {
      title: 'all full without types where the window is off',
      config: { ...sliding, layer_types: undefined, use_sliding_window: false, max_window_layers: 1 },
      attention: [
        { causal: false, window: null },
        { causal: false, window: null },
      ],
    },
    {
      title: 'all as is_causal says',
      config: { ...sliding, is_causal: false },
      attention: [
        { causal: false, window: 16 },
        { causal: false, window: null },
      ],
    },
    {
      title: 'all as dflash_config.causal says',
      config: { ...sliding, dflash_config: { ...inner, causal: true } },
      attention: [
        { causal: true, window: 16 },
        { causal: true, window: null },
      ],
    },
  ])('makes $title', async ({ config, attention }) => {
    expect(readDflashConfig(await dflashFolder({ ...CONFIG, ...config })).attention).toEqual(attention);
  });

  it.each([
    {
      title: 'the config of a model',
      config: { architectures: ['LlamaForCausalLM'], dflash_config: undefined },
      message: /DFlashDraftModel.*LlamaForCausalLM/,
    },
    { title: 'another activation', config: { hidden_act: 'gelu' }, message: /silu.*gelu/ },
    {
      title: 'a mask outside the vocabulary',
      config: { dflash_config: { ...inner, mask_token_id: 40 } },
      message: /vocab_size 40, got 40/,
    },
    {
      title: 'a tap above the target',
      config: { dflash_config: { ...inner, target_layer_ids: [0, 7] } },
      message: /-1 to 3 .*got 7/,
    },
    {
      title: 'a tap below it',
      config: { dflash_config: { ...inner, target_layer_ids: [-2, 2] } },
      message: /-1 to 3 .*got -2/,
    },
    {
      title: 'a tap on the last layer',
      config: { dflash_config: { ...inner, target_layer_ids: [0, 3] } },
      message: /last layer \(3\).*final_tap/,
    },
    {
      title: 'a final_tap where the last layer is not tapped',
      config: { final_tap: 'pre' },
      message: /last layer \(3\) among target_layer_ids.*got 0, 2/,
    },
    { title: 'a final_tap of another kind', config: { final_tap: 'both' }, message: /final_tap/ },
    { title: 'two block sizes', config: { dflash_config: { ...inner, block_size: 8 } }, message: /block_size is 8 .* and 4 / },
    {
      title: 'two lists of taps',
      config: { target_layer_ids: [0, 1] },
      message: /target_layer_ids is \[0,2\] .* and \[0,1\] /,
    },
    { title: 'no block size', config: { block_size: undefined }, message: /block_size/ },
    { title: 'a block of one slot', config: { block_size: 1 }, message: /block_size/ },
    { title: 'no taps', config: { dflash_config: { mask_token_id: 1 } }, message: /target_layer_ids/ },
    {
      title: 'an empty list of taps',
      config: { dflash_config: { ...inner, target_layer_ids: [] } },
      message: /target_layer_ids/,
    },
    { title: 'no mask', config: { dflash_config: { target_layer_ids: [0] } }, message: /mask_token_id/ },
    {
      title: 'a key in dflash_config that is not known',
      config: { dflash_config: { ...inner, aux_norms: true } },
      message: /aux_norms/,
    },
    ...['sample_from_anchor', 'causal', 'eagle_aux_hidden_state_layer_ids', 'embedding_multiplier'].map((key) => ({
      title: `${key} beside dflash_config, where nothing is known of it`,
      config: { [key]: true },
      message: new RegExp(`unknown keys, got ${key}`),
    })),
    {
      title: 'a rotary setting that is not known',
      config: { rope_scaling: { rope_type: 'yarn', factor: 4, ramp: 2 } },
      message: /rope_scaling without unknown keys, got ramp/,
    },
    {
      title: 'rotary settings for each type of layer',
      config: { rope_parameters: { full_attention: { rope_type: 'yarn', factor: 4 } } },
      message: /settings of its own for full_attention/,
    },
    { title: 'biases of its feed-forwards', config: { mlp_bias: true }, message: /mlp_bias/ },
    {
      title: 'a window of layers that are not named',
      config: { use_sliding_window: true, sliding_window: 8 },
      message: /neither layer_types nor max_window_layers/,
    },
    {
      title: 'a number of layer types that is not the number of layers',
      config: { layer_types: ['full_attention', 'full_attention'] },
      message: /expected 1 layer_types.*got 2/,
    },
    { title: 'sliding layers without a window', config: { layer_types: ['sliding_attention'] }, message: /sliding_window/ },
    {
      title: 'a window that is switched off',
      config: { layer_types: ['sliding_attention'], sliding_window: 8, use_sliding_window: false },
      message: /use_sliding_window/,
    },
    { title: 'no base of its rotary embedding', config: { rope_theta: undefined }, message: /rope_theta/ },
    {
      title: 'heads that do not divide the hidden size',
      config: { head_dim: undefined, num_attention_heads: 3 },
      message: /hidden_size 8 .* 3 divides/,
    },
    {
      title: 'key heads that do not divide the heads',
      config: { num_attention_heads: 3, num_key_value_heads: 2 },
      message: /num_attention_heads 3 .* got 2/,
    },
  ])('is refused for $title', async ({ config, message }) => {
    const folder = await dflashFolder({ ...CONFIG, ...config });
    expect(() => readDflashConfig(folder)).toThrowError(
      expect.objectContaining({ code: 'invalid_checkpoint', message: expect.stringMatching(message) }),
    );
  });

  it.each([
    { finalTap: 'pre', taps: [3, -1] },
    { finalTap: 'post', taps: [4, -1] },
  ] as const)('taps the last layer with final_tap $finalTap as $taps', async ({ finalTap, taps }) => {
    const ids = { ...inner, target_layer_ids: [3, -1] };
    const outer = { ...CONFIG, final_tap: finalTap, dflash_config: ids };
    expect(readDflashConfig(await dflashFolder(outer))).toMatchObject({ taps, finalTap });
    const within = { ...CONFIG, dflash_config: { ...ids, final_tap: finalTap } };
    expect(readDflashConfig(await dflashFolder(within))).toMatchObject({ taps, finalTap });
    const unsaid = { ...CONFIG, dflash_config: ids };
    expect(readDflashConfig(await dflashFolder(unsaid), { finalTap })).toMatchObject({ taps, finalTap });
  });

  it('may have keys that change nothing, and null for keys that it does not have', async () => {
    const idle = { attention_dropout: 0, bos_token_id: 0, initializer_range: 0.02, use_cache: true, mlp_bias: false };
    const nulls = { mask_token_id: null, target_layer_ids: null, rope_scaling: null, sliding_window: null };
    const folder = await dflashFolder({ ...CONFIG, ...idle, ...nulls, dflash_config: { ...inner, block_size: null } });
    expect(readDflashConfig(folder)).toEqual(readDflashConfig(await dflashFolder()));
    const outer = { mask_token_id: 1, target_layer_ids: [0, 2], dflash_config: null };
    expect(readDflashConfig(await dflashFolder({ ...CONFIG, ...outer }))).toMatchObject({ maskTokenId: 1, taps: [0, 2] });
  });

  it('may have keys that are not known where that is allowed', async () => {
    const folder = await dflashFolder({ ...CONFIG, causal: true, dflash_config: { ...inner, aux_norms: true } });
    expect(readDflashConfig(folder, { allowUnclaimed: true })).toMatchObject({ taps: [0, 2] });
  });

  it.each([
    { kind: 'DSpark', config: { architectures: ['Qwen3DSparkModel'] } },
    { kind: 'DSpark', config: { markov_rank: 256 } },
    { kind: 'DSpark', config: { dflash_config: { ...inner, markov_rank: 256 } } },
    { kind: 'DFlare', config: { model_arch: 'dflare' } },
    { kind: 'DFly', config: { architectures: ['Qwen3DFlyModel'] } },
    { kind: 'Domino', config: { projector_type: 'domino' } },
    { kind: 'Domino', config: { dflash_config: { ...inner, projector_type: 'domino' } } },
    { kind: 'EAGLE', config: { architectures: ['LlamaForCausalLMEagle3'] } },
    { kind: 'one of architectures', config: { architectures: ['Qwen3DFlashModel'] } },
    {
      kind: 'one of architectures',
      config: { architectures: undefined, dflash_config: undefined, target_layer_ids: [0, 2], mask_token_id: 1 },
    },
    { kind: 'speculators checkpoint of type eagle3', config: { speculators_model_type: 'eagle3' } },
  ])('is refused by name as a $kind', async ({ kind, config }) => {
    const folder = await dflashFolder({ ...CONFIG, ...config });
    for (const allowUnclaimed of [false, true]) {
      expect(() => readDflashConfig(folder, { allowUnclaimed })).toThrowError(
        expect.objectContaining({
          code: 'incompatible_drafter',
          message: expect.stringMatching(new RegExp(`got (an? )?${kind}`)),
        }),
      );
    }
  });

  describe('of DFlash 2', () => {
    const keys = { conv_kernel_size: 2, conv_group_size: 4, selector_rank: 6, selector_top_k: 5 };
    const read = async (changes: object) =>
      readDflashConfig(
        await dflashFolder({
          ...CONFIG,
          architectures: ['DFlash2DraftModel'],
          dflash_config: { ...CONFIG.dflash_config, ...keys, ...changes },
        }),
      );

    it('has sizes of convolutions and of the selector', async () => {
      expect((await read({})).dflash2).toEqual({ convWidth: 2, convGroup: 4, candidates: 5, rank: 6 });
    });

    it.each([
      { changes: { selector_rank: undefined }, message: /selector_rank.*a DFlash 2 drafter needs it/ },
      { changes: { conv_group_size: 3 }, message: /conv_group_size that divides hidden_size 8, got 3/ },
      { changes: { selector_top_k: 41 }, message: /selector_top_k of at most vocab_size 40, got 41/ },
      { changes: { confidence: 1 }, message: /unknown keys, got confidence/ },
    ])('is refused with $changes', async ({ changes, message }) => {
      await expect(read(changes)).rejects.toThrowError(message);
    });

    it('has keys that DFlash does not', async () => {
      const folder = await dflashFolder({ ...CONFIG, dflash_config: { ...CONFIG.dflash_config, ...keys } });
      expect(() => readDflashConfig(folder)).toThrowError(/unknown keys, got conv_kernel_size/);
    });
  });
});
