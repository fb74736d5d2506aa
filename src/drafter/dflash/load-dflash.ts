/** Opens a DFlash drafter folder, of either layout. */
import { openCheckpoint } from '../../checkpoint/checkpoint.ts';
import { type PrepareWeightsOptions, prepareWeights } from '../../checkpoint/prepare-weights.ts';
import type { WeightFormat } from '../../checkpoint/weight-plan.ts';
import type { EmbeddingFormat, EmbeddingSpec } from '../../graph/embedding.ts';
import type { LinearSpec } from '../../graph/linear.ts';
import { precisionOf } from '../../graph/precision.ts';
import { ropeTables } from '../../graph/rope.ts';
import { floatTensor } from '../../model/float-tensor.ts';
import { CachePool } from '../../model/kv-cache.ts';
import type { Device } from '../../onnx/device.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import { WeightTensors } from '../../onnx/weight-tensors.ts';
import type { BorrowedTarget } from '../borrowed-target.ts';
import { addBaseKernelParts } from './block-convolution.ts';
import { PREDECESSORS, SUCCESSORS } from './candidate-lattice.ts';
import { checkDflash } from './check-checkpoint.ts';
import type { DflashConfig } from './dflash-config.ts';
import { DflashDrafter } from './dflash-drafter.ts';
import { DRAFT_ROPE_COS, DRAFT_ROPE_SIN } from './dflash-graph.ts';
import { OWN_EMBEDDING, OWN_HEAD, type OwnTables } from './dflash-weights.ts';

const DRAFT_HEAD_WEIGHT = 'draft_head.weight';

export interface LoadDflashOptions {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  readonly folder: string;
  /** What {@link readDflashConfig} found there. */
  readonly config: DflashConfig;
  readonly format: WeightFormat;
  readonly target: BorrowedTarget;
  /** Folder for converted weights; null: the user's cache folder. */
  readonly cacheDir: string | null;
  /** Tensors that nothing uses are no error. */
  readonly allowUnclaimed?: boolean;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  readonly signal?: AbortSignal;
}

/** @throws AppError `incompatible_drafter` naming both numbers, `invalid_checkpoint`, or what ONNX Runtime reports */
export async function loadDflash(options: LoadDflashOptions): Promise<DflashDrafter> {
  const { runtime, device, folder, config, format, target } = options;
  const checkpoint = await openCheckpoint(folder);
  const { own, plan, keptTokens } = await checkDflash(config, checkpoint, target, options.allowUnclaimed ?? false);

  const precision = precisionOf(format, device.kind);
  const { compute } = precision;
  const common = {
    format,
    compute,
    ...(options.cacheDir === null ? {} : { outDir: options.cacheDir }),
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
  const locations = new Map(await prepareWeights({ checkpoint, plan, ...common }));
  const head = headOf(config, target, own, keptTokens);
  if (head.weight === DRAFT_HEAD_WEIGHT && keptTokens !== null) {
    for (const [name, location] of await rowsOfTargetHead(target, head, keptTokens, common)) locations.set(name, location);
  }
  const embedding = own.embedding ? ownEmbedding(config, locations.get(OWN_EMBEDDING)?.dtype) : target.embedding;

  const weights = new WeightTensors(runtime, locations);
  for (const spec of convolutionsOf(config)) addBaseKernelParts(runtime, weights, spec);
  const positions = target.maxContext + config.blockSize + CachePool.SPARE_POSITIONS;
  const tables = ropeTables(config.rope, positions);
  const tableShape = [positions, config.headDim / 2];
  weights.add(DRAFT_ROPE_COS, floatTensor(runtime, compute, tableShape, tables.cos));
  weights.add(DRAFT_ROPE_SIN, floatTensor(runtime, compute, tableShape, tables.sin));
  return DflashDrafter.create({
    runtime,
    device,
    config,
    target,
    weights,
    graph: { precision, embedding, head, positions, codebooks: codebooksOf(config, locations) },
    keptTokens,
  });
}

function headOf(config: DflashConfig, target: BorrowedTarget, own: OwnTables, keptTokens: Int32Array | null): LinearSpec {
  const shape = { inFeatures: config.hidden, format: target.head.format };
  if (own.head) return { ...shape, weight: OWN_HEAD, outFeatures: config.draftVocab };
  return keptTokens === null ? target.head : { ...shape, weight: DRAFT_HEAD_WEIGHT, outFeatures: keptTokens.length };
}

function rowsOfTargetHead(
  target: BorrowedTarget,
  head: LinearSpec,
  rows: Int32Array,
  common: Omit<PrepareWeightsOptions, 'checkpoint' | 'plan'>,
) {
  const chosen = {
    name: head.weight,
    source: target.head.weight,
    kind: 'head' as const,
    shape: [head.outFeatures, head.inFeatures],
    rows,
  };
  return prepareWeights({ checkpoint: target.checkpoint, plan: [chosen], ...common });
}

function ownEmbedding(config: DflashConfig, dtype: string | undefined): EmbeddingSpec {
  return { weight: OWN_EMBEDDING, vocab: config.vocab, hidden: config.hidden, format: tableFormat(dtype) };
}

/** Of all layers; none without DFlash 2. */
function convolutionsOf({ dflash2, layers, hidden }: DflashConfig) {
  if (dflash2 === null) return [];
  const { convWidth: width, convGroup: group } = dflash2;
  return Array.from({ length: layers }, (_, layer) =>
    ['attention_conv', 'mlp_conv'].map((part) => ({ prefix: `layers.${layer}.${part}`, hidden, width, group })),
  ).flat();
}

function codebooksOf({ dflash2 }: DflashConfig, locations: ReadonlyMap<string, { readonly dtype: string }>) {
  if (dflash2 === null) return null;
  const format = (name: string) => tableFormat(locations.get(name)?.dtype);
  return { predecessors: format(PREDECESSORS), successors: format(SUCCESSORS) };
}

function tableFormat(dtype: string | undefined): EmbeddingFormat {
  if (dtype === 'F16') return 'f16';
  return dtype === 'BF16' ? 'bf16' : 'f32';
}
