/**
 * Reads the config.json of a DFlash drafter in speculators' layout. Its layer id k is the residual stream behind k
 * layers, so that 0 is the embedding and k is the output of the layer that z-lab counts as k - 1.
 *
 * Source: speculators 0.9, `models/dflash` and `convert/dflash/converter.py`.
 */
import { z } from 'zod';
import { readJson } from '../../checkpoint/read-json.ts';
import { AppError } from '../../core/app-error.ts';
import { bodyFromConfig, bodyKeys } from './body-config.ts';
import type { DflashConfig, ReadDflashOptions } from './dflash-config.ts';
import { FINAL_TAPS, tappedLayers } from './tapped-layers.ts';
import { IDLE_KEYS, refuseUnknownKeys, refuseUnknownRopeKeys } from './unknown-keys.ts';

const IDS = 'aux_hidden_state_layer_ids';

const layerKeys = { model_type: z.enum(['qwen3', 'llama']).nullish(), ...bodyKeys };
const ownKeys = {
  speculators_model_type: z.literal('dflash'),
  transformer_layer_config: z.looseObject(layerKeys),
  [IDS]: z.array(z.number().int().nonnegative()).min(1).nullish(),
  block_size: z.number().int().min(2),
  draft_vocab_size: z.number().int().positive(),
  mask_token_id: z.number().int().nonnegative(),
  target_hidden_size: z.number().int().positive().nullish(),
  sliding_window_non_causal: z.boolean().nullish(),
  sample_from_anchor: z.boolean().nullish(),
  final_tap: z.enum(FINAL_TAPS).nullish(),
};
const configSchema = z.looseObject(ownKeys);

/** Keys of its trainer that change nothing that is computed. */
const TRAINING_KEYS = ['has_no_defaults_at_init', 'max_anchors', 'speculators_config', 'speculators_version'];

/** @throws AppError `invalid_checkpoint` naming what is missing or contradictory */
export function readSpeculatorsConfig(file: string, options: Required<ReadDflashOptions>): DflashConfig {
  const raw = readJson(file, configSchema);
  const refuse = (message: string) => new AppError('invalid_checkpoint', `${file}: ${message}`);
  if (!options.allowUnclaimed) {
    refuseUnknownKeys(raw, [...Object.keys(ownKeys), ...TRAINING_KEYS, ...IDLE_KEYS], 'a speculators config', refuse);
    const known = [...Object.keys(layerKeys), ...IDLE_KEYS];
    refuseUnknownKeys(raw.transformer_layer_config, known, 'transformer_layer_config', refuse);
  }
  const layers = raw.transformer_layer_config;
  const nonCausal = raw.sliding_window_non_causal ?? false;
  const body = bodyFromConfig(
    layers,
    (type) => type === 'sliding_attention' && !nonCausal,
    `${file}: transformer_layer_config`,
    refuse,
  );
  if (!options.allowUnclaimed) refuseUnknownRopeKeys(layers, refuse);
  if (raw.mask_token_id >= body.vocab) {
    throw refuse(`expected a mask_token_id below vocab_size ${body.vocab}, got ${raw.mask_token_id}`);
  }
  if (raw.draft_vocab_size > body.vocab) {
    throw refuse(`expected a draft_vocab_size of at most vocab_size ${body.vocab}, got ${raw.draft_vocab_size}`);
  }
  const ids = raw[IDS] ?? defaultIds(options.targetLayers, refuse);
  return {
    ...body,
    layout: 'speculators',
    blockSize: raw.block_size,
    maskTokenId: raw.mask_token_id,
    draftsFromAnchor: raw.sample_from_anchor ?? false,
    ...tappedLayers(
      ids.map((id) => id - 1),
      {
        targetLayers: options.targetLayers,
        finalTap: raw.final_tap ?? null,
        defaultFinalTap: options.finalTap,
        written: (layer) => layer + 1,
        key: IDS,
      },
      refuse,
    ),
    tapsAssumed: !raw[IDS],
    targetHidden: raw.target_hidden_size ?? body.hidden,
    targetLayers: null,
    draftVocab: raw.draft_vocab_size,
    inputEmbeddingScale: 1,
    outputMultiplier: 1,
    logitSoftcap: null,
    dflash2: null,
  };
}

/** What its trainer takes when nothing is chosen. */
function defaultIds(targetLayers: number | null, refuse: (message: string) => AppError): readonly number[] {
  if (targetLayers === null) {
    throw refuse(`expected a list of layers as ${IDS}, got none; name the target, or write in the ids it was trained with`);
  }
  return [2, Math.floor(targetLayers / 2), targetLayers - 3];
}
