/** What a model folder says it is. Formats are told apart by what they declare, never by their numbers. */
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../checkpoint/read-json.ts';
import { AppError } from '../../core/app-error.ts';

/** The two layouts of DFlash checkpoints: the same ids of layers mean other layers in them. */
export type DflashLayout = 'z-lab' | 'speculators';

const DFLASH_ARCHITECTURE = 'DFlashDraftModel';
/** What `architectures` has for a DFlash 2 drafter. */
export const DFLASH2_ARCHITECTURE = 'DFlash2DraftModel';

const declarationSchema = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  model_arch: z.string().nullish(),
  speculators_model_type: z.string().nullish(),
  markov_rank: z.number().nullish(),
  projector_type: z.string().nullish(),
  target_layer_ids: z.unknown().optional(),
  dflash_config: z.looseObject({ markov_rank: z.number().nullish(), projector_type: z.string().nullish() }).nullish(),
});
type Declaration = z.infer<typeof declarationSchema>;

/** Relatives of DFlash, which share its names and compute something else. */
const RELATIVES: readonly (readonly [name: string, declares: (config: Declaration) => boolean])[] = [
  [
    'DSpark',
    ({ architectures, markov_rank, dflash_config }) =>
      (architectures?.some((name) => /DSpark/i.test(name)) ?? false) ||
      typeof (markov_rank ?? dflash_config?.markov_rank) === 'number',
  ],
  ['DFlare', ({ model_arch }) => model_arch === 'dflare'],
  ['DFly', ({ architectures }) => architectures?.some((name) => /DFly/i.test(name)) ?? false],
  ['Domino', ({ projector_type, dflash_config }) => (projector_type ?? dflash_config?.projector_type) === 'domino'],
  ['EAGLE', ({ architectures }) => architectures?.some((name) => /Eagle/i.test(name)) ?? false],
];

export interface DeclaredFormat {
  /** Null when the folder declares no DFlash drafter. */
  readonly layout: DflashLayout | null;
  readonly architectures: readonly string[];
}

/**
 * @throws AppError `invalid_checkpoint` without a config, `incompatible_drafter` naming a drafter of a kind that is not supported
 */
export function declaredFormat(folder: string): DeclaredFormat {
  const file = join(folder, 'config.json');
  const config = readJson(file, declarationSchema);
  const { speculators_model_type: speculators } = config;
  const architectures = config.architectures ?? [];
  if (typeof speculators === 'string') {
    if (speculators === 'dflash') return { layout: 'speculators', architectures };
    throw unsupported(file, `a speculators checkpoint of type ${speculators}`);
  }
  const relative = RELATIVES.find(([, declares]) => declares(config));
  if (relative !== undefined) throw unsupported(file, `a ${relative[0]} drafter`);
  const zlab = architectures.includes(DFLASH_ARCHITECTURE) || architectures.includes(DFLASH2_ARCHITECTURE);
  // Else it would be taken for a model, and refused for what a drafter does not have.
  if (!zlab && (config.dflash_config ?? config.target_layer_ids ?? null) !== null) {
    throw unsupported(file, `one of architectures ${JSON.stringify(architectures)}`);
  }
  return { layout: zlab ? 'z-lab' : null, architectures };
}

function unsupported(file: string, what: string): AppError {
  return new AppError(
    'incompatible_drafter',
    `${file}: expected a DFlash drafter in z-lab's or speculators' layout, got ${what}, which is not supported; choose another drafter`,
  );
}

/** Tensors that belong to something other than DFlash, which does without them. */
const FOREIGN_TENSORS: readonly (readonly [pattern: RegExp, owner: string])[] = [
  [/(^|\.)(attention_conv|mlp_conv|candidate_selector)\./, 'DFlash 2'],
  [/markov|confidence_head/, 'DSpark'],
  [/k_proj_target|v_proj_target/, 'DFlare'],
  [/hidden_correction|layer_fusion_weights/, 'DFly'],
  [/^(context_proj|context_norm|final_norm)\./, 'an AngelSpec training run, not exported yet'],
  [/aux_hidden_norms|aux_norm|g_proj|qkv_proj/, 'a Laguna drafter'],
  [/gru|domino/i, 'Domino'],
];

/** Whose tensor it is, where the name tells; else null. */
export function ownerOfTensor(name: string): string | null {
  return FOREIGN_TENSORS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}
