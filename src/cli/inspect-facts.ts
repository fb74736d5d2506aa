/** What a model folder holds, in numbers. */
import { basename } from 'node:path';
import { claimTensors } from '../checkpoint/claim-tensors.ts';
import { planBytes } from '../checkpoint/plan-bytes.ts';
import { elementCount, formatShape, tensorBytes } from '../checkpoint/tensor-dtype.ts';
import { sourceNames, type WeightFormat } from '../checkpoint/weight-plan.ts';
import { AppError } from '../core/app-error.ts';
import { type DflashConfig, longestDraft } from '../drafter/dflash/dflash-config.ts';
import { OWN_EMBEDDING } from '../drafter/dflash/dflash-weights.ts';
import { readKeptTokens } from '../drafter/dflash/kept-tokens.ts';
import { precisionOf } from '../graph/precision.ts';
import { type CacheShape, CacheTensors } from '../model/kv-cache.ts';
import { embeddingWeight } from '../target/decoder-spec.ts';
import { recurrentShape } from '../target/recurrence.ts';
import { type ComparedWithTarget, compareWithTarget } from './inspect-compatibility.ts';
import type { DecoderFolder, DflashFolder, ModelFolder } from './inspect-folder.ts';
import { type NamedTap, namedTaps } from './inspect-taps.ts';

const FORMATS: readonly WeightFormat[] = ['f32', 'bf16', 'f16', 'int8', 'int4'];
const F32_BYTES = 4;

export interface Inspection {
  readonly folder: string;
  readonly name: string;
  readonly role: 'target' | 'drafter';
  /** Family of a target, layout of a drafter. */
  readonly format: string;
  /** Sizes that describe it, by the config's keys. */
  readonly shape: Readonly<Record<string, number | string>>;
  readonly tensors: {
    readonly claimed: number;
    readonly missing: readonly string[];
    readonly unclaimed: readonly string[];
    /** Planned and stored shapes where they differ. */
    readonly misshapen: readonly string[];
    /** Stored tensors by type. */
    readonly dtypes: Readonly<Record<string, number>>;
  };
  /** Values in the claimed tensors. */
  readonly parameters: number;
  readonly storedBytes: number;
  /** Bytes of the weights in each format. */
  readonly memory: Readonly<Record<WeightFormat, number>>;
  /** Bytes of the keys and values of one position, by the format of the weights; of quantised ones as on a CPU. */
  readonly cacheBytesPerPosition: Readonly<Record<WeightFormat, number>>;
  /** Bytes of the states that a sequence has however long it is. */
  readonly cacheBytesPerSequence: number;
  /** Of a drafter that sees activations. */
  readonly taps: readonly NamedTap[];
  /** With a target that was named; null: none was. */
  readonly compatibility: ComparedWithTarget | null;
}

/** @param allowUnclaimed tensors that nothing uses are no problem with a target */
export async function inspectFolder(
  opened: ModelFolder,
  target: DecoderFolder | null,
  allowUnclaimed = false,
): Promise<Inspection> {
  const { folder, checkpoint, plan, verbatim } = opened;
  const { claimed, missing, unclaimed } = claimTensors(checkpoint, plan, verbatim);
  const dtypes: Record<string, number> = {};
  let storedBytes = 0;
  let parameters = 0;
  for (const name of checkpoint.names) {
    const tensor = checkpoint.tensor(name);
    const parts = tensor.type === 'plain' ? [tensor] : [tensor.values, tensor.scale];
    const dtype = tensor.type === 'plain' ? tensor.dtype : `int${tensor.bits}`;
    dtypes[dtype] = (dtypes[dtype] ?? 0) + 1;
    storedBytes += parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }
  for (const name of claimed) {
    if (!verbatim.includes(name)) parameters += elementCount(checkpoint.tensor(name).shape);
  }
  const memory = Object.fromEntries(
    FORMATS.map((format) => [format, planBytes(plan, format, embeddingElementBytes(opened))]),
  ) as Record<WeightFormat, number>;
  return {
    folder,
    name: basename(folder),
    role: opened.role === 'decoder' ? 'target' : 'drafter',
    format:
      opened.role === 'decoder'
        ? opened.config.spec.family
        : `DFlash${opened.config.dflash2 === null ? '' : ' 2'}, ${opened.config.layout} layout`,
    shape: await shapeOf(opened),
    tensors: { claimed: claimed.length, missing, unclaimed, misshapen: misshapen(opened), dtypes },
    parameters,
    storedBytes,
    memory,
    ...cacheBytes(opened),
    taps:
      opened.role === 'dflash'
        ? namedTaps(opened.config.taps, target?.config.spec.layers.length ?? trainedDepth(opened.config))
        : [],
    compatibility: target === null ? null : await compareWithTarget(opened, target, allowUnclaimed),
  };
}

/** Layers of the target it was trained for: where it says how it taps the last one, that is the highest. Null: not known. */
function trainedDepth({ targetLayers, finalTap, taps }: DflashConfig): number | null {
  if (targetLayers !== null || finalTap === null) return targetLayers;
  return finalTap === 'post' ? Math.max(...taps) : Math.max(...taps) + 1;
}

function embeddingElementBytes(opened: ModelFolder): number {
  const name = opened.role === 'decoder' ? embeddingWeight(opened.config.spec) : OWN_EMBEDDING;
  if (!opened.checkpoint.has(name)) return F32_BYTES;
  const tensor = opened.checkpoint.tensor(name);
  return tensor.type === 'plain' ? (tensorBytes(tensor.dtype, 1) ?? F32_BYTES) : F32_BYTES;
}

function misshapen({ plan, checkpoint }: ModelFolder): string[] {
  return plan.flatMap((weight) => {
    const [name] = sourceNames(weight);
    if (name === undefined || !checkpoint.has(name)) return [];
    const { shape } = checkpoint.tensor(name);
    return formatShape(shape) === formatShape(weight.shape)
      ? []
      : [`${name} is ${formatShape(shape)}, expected ${formatShape(weight.shape)}`];
  });
}

async function shapeOf(opened: ModelFolder): Promise<Record<string, number | string>> {
  if (opened.role === 'decoder') {
    const { spec } = opened.config;
    const { heads, kvHeads, headDim } = spec.attention;
    const attention = spec.layers.filter(({ mixer }) => mixer === 'attention').length;
    return {
      layers: attention === spec.layers.length ? attention : `${spec.layers.length} (${attention} with attention)`,
      hidden: spec.hidden,
      heads: `${heads} of ${headDim}, ${kvHeads} of keys and values`,
      vocabulary: spec.vocab,
      context: spec.maxPositions,
      head: spec.tiedHead ? 'the embedding table' : 'its own',
      rope: `base ${spec.rope.theta}, ${spec.rope.scaling.type}`,
    };
  }
  const { config, own } = opened;
  const windows = [...new Set(config.attention.flatMap(({ window }) => (window === null ? [] : [window])))];
  const sliding = config.attention.filter(({ window }) => window !== null).length;
  return {
    layers: sliding === 0 ? config.layers : `${config.layers} (${sliding} with a window of ${windows.join(', ')})`,
    hidden: config.hidden,
    heads: `${config.heads} of ${config.headDim}, ${config.kvHeads} of keys and values`,
    vocabulary: await vocabulary(opened),
    block: `${config.blockSize} slots, drafts of up to ${longestDraft(config)}`,
    mask: config.maskTokenId,
    embedding: own.embedding ? 'its own' : "the target's",
    head: own.head ? 'its own' : "the target's",
    rope: `base ${config.rope.theta}, ${config.rope.scaling.type}`,
  };
}

/** How many tokens it can choose, as its config says, or a list beside weights whose head is the target's. */
async function vocabulary({ folder, config, checkpoint, own }: DflashFolder): Promise<number | string> {
  const { vocab, draftVocab } = config;
  if (draftVocab < vocab) return `${draftVocab} of ${vocab}`;
  try {
    const kept = await readKeptTokens(folder, config, checkpoint, own);
    return kept === null || kept.length === vocab ? vocab : `${kept.length} of ${vocab}`;
  } catch (error) {
    // Why, a comparison with a target says; what else the folder holds is told all the same.
    if (error instanceof AppError) return `${vocab}, with a list of kept tokens that cannot be used`;
    throw error;
  }
}

function cacheBytes(opened: ModelFolder): Pick<Inspection, 'cacheBytesPerPosition' | 'cacheBytesPerSequence'> {
  if (opened.role === 'dflash') return { cacheBytesPerPosition: bytesPerPosition(opened.config), cacheBytesPerSequence: 0 };
  const { spec } = opened.config;
  const layers = spec.layers.filter(({ mixer }) => mixer === 'attention').length;
  const state = recurrentShape(spec);
  const elements = state === null ? 0 : state.layers * (elementCount(state.window) + elementCount(state.state));
  // States come in pairs, so that the last step can be taken back, and are f32 in any format.
  return {
    cacheBytesPerPosition: bytesPerPosition({ ...spec.attention, layers }),
    cacheBytesPerSequence: 2 * elements * F32_BYTES,
  };
}

function bytesPerPosition({ layers, kvHeads, headDim }: Pick<CacheShape, 'layers' | 'kvHeads' | 'headDim'>) {
  return Object.fromEntries(
    FORMATS.map((format) => {
      const { compute: type } = precisionOf(format, 'cpu');
      return [format, CacheTensors.bytesPerPosition({ layers, kvHeads, headDim, type })];
    }),
  ) as Record<WeightFormat, number>;
}
