/** Reads the config.json of a DFlash drafter in z-lab's layout, whose layer ids count layers from 0. */
import { z } from 'zod';
import { readJson } from '../../checkpoint/read-json.ts';
import { AppError } from '../../core/app-error.ts';
import { bodyFromConfig, bodyKeys, type DflashBody } from './body-config.ts';
import { DFLASH2_ARCHITECTURE } from './declared-format.ts';
import type { Dflash2Config, DflashConfig, ReadDflashOptions } from './dflash-config.ts';
import { FINAL_TAPS, tappedLayers } from './tapped-layers.ts';
import { IDLE_KEYS, refuseUnknownKeys, refuseUnknownRopeKeys } from './unknown-keys.ts';

/** In either place, of which `dflash_config` comes first. */
const sharedKeys = {
  input_embedding_scale: z.number().nullish(),
  output_multiplier: z.number().nullish(),
  final_logit_softcapping: z.number().positive().nullish(),
  final_tap: z.enum(FINAL_TAPS).nullish(),
};
/** In either place, but not differently. */
const placedKeys = {
  mask_token_id: z.number().int().nonnegative().nullish(),
  target_layer_ids: z.array(z.number().int()).min(1).nullish(),
  block_size: z.number().int().min(2).nullish(),
};
const dflashKeys = {
  ...placedKeys,
  causal: z.boolean().nullish(),
  ...sharedKeys,
};

const count = z.number().int().positive();
const dflash2Keys = {
  conv_kernel_size: count,
  conv_group_size: count,
  selector_rank: count,
  selector_top_k: count,
};
const dflash2Schema = z.looseObject(dflash2Keys);

const ownKeys = {
  ...bodyKeys,
  ...placedKeys,
  ...sharedKeys,
  architectures: z.array(z.string()).nullish(),
  num_target_layers: z.number().int().positive(),
  is_causal: z.boolean().nullish(),
  dflash_config: z.looseObject(dflashKeys).nullish(),
};
const configSchema = z.looseObject(ownKeys);
type RawConfig = z.infer<typeof configSchema>;

/** @throws AppError `invalid_checkpoint` naming what is missing or contradictory */
export function readZlabConfig(file: string, options: Required<ReadDflashOptions>): DflashConfig {
  const raw = readJson(file, configSchema);
  const refuse = (message: string) => new AppError('invalid_checkpoint', `${file}: ${message}`);
  const inner = raw.dflash_config;
  const second = raw.architectures?.includes(DFLASH2_ARCHITECTURE) ?? false;
  if (!options.allowUnclaimed) {
    const ofSecond = second ? Object.keys(dflash2Keys) : [];
    refuseUnknownKeys(inner ?? {}, [...Object.keys(dflashKeys), ...ofSecond], 'dflash_config', refuse);
    refuseUnknownKeys(raw, [...Object.keys(ownKeys), ...ofSecond, ...IDLE_KEYS], 'the config of a DFlash drafter', refuse);
  }
  // `is_causal` holds for all layers; without it, sliding layers are causal in the block and full layers are not.
  const causal = raw.is_causal ?? inner?.causal ?? null;
  const body = bodyFromConfig(raw, (type) => causal ?? type === 'sliding_attention', file, refuse);
  if (!options.allowUnclaimed) refuseUnknownRopeKeys(raw, refuse);
  const maskTokenId = eitherPlace(raw, 'mask_token_id', refuse);
  if (maskTokenId >= body.vocab) throw refuse(`expected a mask_token_id below vocab_size ${body.vocab}, got ${maskTokenId}`);
  return {
    ...body,
    layout: 'z-lab',
    blockSize: eitherPlace(raw, 'block_size', refuse),
    maskTokenId,
    draftsFromAnchor: false,
    ...tappedLayers(
      eitherPlace(raw, 'target_layer_ids', refuse),
      {
        targetLayers: raw.num_target_layers,
        finalTap: inner?.final_tap ?? raw.final_tap ?? null,
        defaultFinalTap: options.finalTap,
        written: (layer) => layer,
        key: 'target_layer_ids',
      },
      refuse,
    ),
    tapsAssumed: false,
    targetHidden: body.hidden,
    targetLayers: raw.num_target_layers,
    draftVocab: body.vocab,
    inputEmbeddingScale: inner?.input_embedding_scale ?? raw.input_embedding_scale ?? 1,
    outputMultiplier: inner?.output_multiplier ?? raw.output_multiplier ?? 1,
    logitSoftcap: inner?.final_logit_softcapping ?? raw.final_logit_softcapping ?? null,
    dflash2: second ? dflash2Config({ ...raw, ...inner }, body, refuse) : null,
  };
}

function dflash2Config(keys: unknown, { hidden, vocab }: DflashBody, refuse: (message: string) => AppError): Dflash2Config {
  const parsed = dflash2Schema.safeParse(keys);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw refuse(`${issue?.path.join('.')}: ${issue?.message}; a DFlash 2 drafter needs it`);
  }
  const { conv_kernel_size, conv_group_size, selector_rank, selector_top_k } = parsed.data;
  if (hidden % conv_group_size !== 0) {
    throw refuse(`expected a conv_group_size that divides hidden_size ${hidden}, got ${conv_group_size}`);
  }
  if (selector_top_k > vocab) throw refuse(`expected a selector_top_k of at most vocab_size ${vocab}, got ${selector_top_k}`);
  return { convWidth: conv_kernel_size, convGroup: conv_group_size, candidates: selector_top_k, rank: selector_rank };
}

type PlacedKey = 'block_size' | 'mask_token_id' | 'target_layer_ids';

/** Older checkpoints have these keys at the top level, newer ones in `dflash_config`; a guess would make a bad drafter silently. */
function eitherPlace<K extends PlacedKey>(
  raw: RawConfig,
  key: K,
  refuse: (message: string) => AppError,
): NonNullable<RawConfig[K]> {
  const inner = raw.dflash_config?.[key] ?? null;
  const outer = raw[key] ?? null;
  if (inner !== null && outer !== null && JSON.stringify(inner) !== JSON.stringify(outer)) {
    throw refuse(
      `${key} is ${JSON.stringify(inner)} in dflash_config and ${JSON.stringify(outer)} at the top level; keep the one it was trained with`,
    );
  }
  const value = inner ?? outer;
  if (value === null) throw refuse(`expected ${key} in dflash_config or at the top level, found neither`);
  return value as NonNullable<RawConfig[K]>;
}
