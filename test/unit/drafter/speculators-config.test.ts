import { describe, expect, it } from 'vitest';
import { longestDraft, readDflashConfig } from '../../../src/drafter/dflash/dflash-config.ts';
import { dflashFolder, SPECULATORS_CONFIG } from './dflash-fixture.ts';

const { transformer_layer_config: layers } = SPECULATORS_CONFIG;

describe('the config of a speculators drafter', () => {
  it('is read with its layer ids as the number of layers in front', async () => {
    expect(readDflashConfig(await dflashFolder(SPECULATORS_CONFIG))).toEqual({
      layout: 'speculators',
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
      targetLayers: null,
      draftVocab: 40,
      attention: [{ causal: false, window: null }],
      inputEmbeddingScale: 1,
      outputMultiplier: 1,
      logitSoftcap: null,
      dflash2: null,
    });
  });

  it('is told by its own key, not by the architecture that it shares with the other layout', async () => {
    const config = {
      ...SPECULATORS_CONFIG,
      num_target_layers: 4,
      dflash_config: { target_layer_ids: [1, 3], mask_token_id: 1 },
    };
    expect(readDflashConfig(await dflashFolder(config), { allowUnclaimed: true })).toMatchObject({ taps: [0, 2] });
    const older = { ...SPECULATORS_CONFIG, architectures: ['DFlashSpeculator'] };
    expect(readDflashConfig(await dflashFolder(older)).layout).toBe('speculators');
  });

  it('has 0 for the embedding', async () => {
    const config = { ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: [2, 0] };
    expect(readDflashConfig(await dflashFolder(config)).taps).toEqual([1, -1]);
  });

  it.each([
    { finalTap: 'pre', taps: [0, 3] },
    { finalTap: 'post', taps: [0, 4] },
  ] as const)('has the highest id for the last layer with final_tap $finalTap', async ({ finalTap, taps }) => {
    const config = { ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: [1, 4], final_tap: finalTap };
    expect(readDflashConfig(await dflashFolder(config), { targetLayers: 4 }).taps).toEqual(taps);
    expect(readDflashConfig(await dflashFolder(config)).taps).toEqual(taps);
  });

  it('has the ids of its trainer’s default for a target of known depth when it names none', async () => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: null });
    expect(readDflashConfig(folder, { targetLayers: 36 })).toMatchObject({ taps: [1, 17, 32], tapsAssumed: true });
  });

  const sliding = { ...layers, num_hidden_layers: 2, layer_types: ['sliding_attention', 'full_attention'], sliding_window: 16 };
  it.each([
    { nonCausal: false, causal: [true, false] },
    { nonCausal: true, causal: [false, false] },
  ])('has layers causal in the block as sliding_window_non_causal $nonCausal says', async ({ nonCausal, causal }) => {
    const config = { ...SPECULATORS_CONFIG, transformer_layer_config: sliding, sliding_window_non_causal: nonCausal };
    const { attention } = readDflashConfig(await dflashFolder(config));
    expect(attention.map((layer) => layer.causal)).toEqual(causal);
    expect(attention.map(({ window }) => window)).toEqual([16, null]);
  });

  it('has a head and taps of other sizes where it says so', async () => {
    const config = { ...SPECULATORS_CONFIG, draft_vocab_size: 12, target_hidden_size: 32 };
    expect(readDflashConfig(await dflashFolder(config))).toMatchObject({ draftVocab: 12, targetHidden: 32, vocab: 40 });
  });

  it.each([
    { title: 'no ids and no known target', config: { aux_hidden_state_layer_ids: null }, message: /name the target, or write/ },
    { title: 'no block size', config: { block_size: undefined }, message: /block_size/ },
    { title: 'no mask', config: { mask_token_id: null }, message: /mask_token_id/ },
    { title: 'no layers', config: { transformer_layer_config: undefined }, message: /transformer_layer_config/ },
    {
      title: 'no base of its rotary embedding, wherever else there is one',
      config: { rope_theta: 1, transformer_layer_config: { ...layers, rope_parameters: undefined } },
      message: /transformer_layer_config has no rope_theta/,
      allowUnclaimed: true,
    },
    {
      title: 'layers of another kind',
      config: { transformer_layer_config: { ...layers, model_type: 'gemma' } },
      message: /model_type/,
    },
    { title: 'a mask outside the vocabulary', config: { mask_token_id: 40 }, message: /vocab_size 40, got 40/ },
    { title: 'a head larger than the vocabulary', config: { draft_vocab_size: 41 }, message: /vocab_size 40, got 41/ },
    { title: 'a key that is not known', config: { aux_norms: true }, message: /aux_norms/ },
    {
      title: 'a key of its layers that is not known',
      config: { transformer_layer_config: { ...layers, is_causal: true } },
      message: /transformer_layer_config without unknown keys, got is_causal/,
    },
    {
      title: 'a rotary setting that is not known',
      config: { transformer_layer_config: { ...layers, rope_parameters: { ...layers.rope_parameters, ramp: 2 } } },
      message: /rope_parameters without unknown keys, got ramp/,
    },
    { title: 'an id below 0', config: { aux_hidden_state_layer_ids: [-1] }, message: /aux_hidden_state_layer_ids/ },
  ])('is refused for $title', async ({ config, message, allowUnclaimed = false }) => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, ...config });
    expect(() => readDflashConfig(folder, { allowUnclaimed })).toThrowError(
      expect.objectContaining({ code: 'invalid_checkpoint', message: expect.stringMatching(message) }),
    );
  });

  it.each([
    { ids: [1, 5], message: /0 to 4 .*got 5/ },
    { ids: [1, 4], message: /last layer \(4\).*final_tap/ },
  ])('is refused for ids $ids on a target of 4 layers', async ({ ids, message }) => {
    const folder = await dflashFolder({ ...SPECULATORS_CONFIG, aux_hidden_state_layer_ids: ids });
    expect(() => readDflashConfig(folder, { targetLayers: 4 })).toThrowError(message);
  });

  it('says whether the anchor’s slot drafts too, which makes the longest draft as long as the block', async () => {
    const read = async (changes: object) => readDflashConfig(await dflashFolder({ ...SPECULATORS_CONFIG, ...changes }));
    const { blockSize, ...config } = await read({ sample_from_anchor: true });
    expect(config.draftsFromAnchor).toBe(true);
    expect(longestDraft({ ...config, blockSize })).toBe(blockSize);
    for (const without of [false, undefined, null]) {
      const plain = await read({ sample_from_anchor: without });
      expect([plain.draftsFromAnchor, longestDraft(plain)]).toEqual([false, blockSize - 1]);
    }
  });
});
