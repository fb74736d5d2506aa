/** Opens a model folder as a target. */
import { type Checkpoint, openCheckpoint } from '../checkpoint/checkpoint.ts';
import { prepareWeights } from '../checkpoint/prepare-weights.ts';
import type { WeightFormat } from '../checkpoint/weight-plan.ts';
import { AppError } from '../core/app-error.ts';
import type { EmbeddingFormat, EmbeddingSpec } from '../graph/embedding.ts';
import type { LinearSpec } from '../graph/linear.ts';
import type { NormSpec } from '../graph/norm.ts';
import { type Precision, precisionOf } from '../graph/precision.ts';
import { ropeTables } from '../graph/rope.ts';
import { floatTensor } from '../model/float-tensor.ts';
import { type Device, requireDevice } from '../onnx/device.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { WeightTensors } from '../onnx/weight-tensors.ts';
import { sparePositions } from './attended-rows.ts';
import { ROPE_COS, ROPE_SIN } from './attention-block.ts';
import { embeddingWeight, finalNormWeight, headWeight } from './decoder-spec.ts';
import { planDecoderWeights } from './decoder-weights.ts';
import { addDerivedWeights, normFactors } from './derived-weights.ts';
import type { ModelConfig } from './hf-config.ts';
import { OnnxTarget } from './onnx-target.ts';
import { EMBEDDING_TAP } from './step-io.ts';
import { refuseUnclaimedTensors } from './unclaimed-tensors.ts';

export interface LoadTargetOptions {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  readonly folder: string;
  /** What {@link readModelConfig} found there. */
  readonly config: ModelConfig;
  readonly format: WeightFormat;
  /** Positions per sequence; null: as many as the model was made for. */
  readonly maxContext: number | null;
  readonly maxSequences: number;
  /** Caches that can be open at once. Default: {@link maxSequences}. */
  readonly maxCaches?: number;
  /** Rows of one step: the longest piece of a prompt that is computed at once. */
  readonly maxRows: number;
  /** Layers whose output the drafters want to see, named as in {@link StepResult.taps}. */
  readonly taps: readonly number[];
  /** Folder for converted weights; null: the user's cache folder. */
  readonly cacheDir: string | null;
  /** Tensors that nothing uses are no error. */
  readonly allowUnclaimed?: boolean;
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Told when the target serves fewer sequences at once from now on, and why. */
  readonly onFewerSequences?: (maxSequences: number, error: unknown) => void;
  readonly signal?: AbortSignal;
}

export interface LoadedTarget {
  readonly target: OnnxTarget;
  readonly checkpoint: Checkpoint;
  /** The table and the head as the graph uses them, for drafters that borrow them. */
  readonly embedding: EmbeddingSpec;
  readonly head: LinearSpec;
  /** The norm before the head. */
  readonly finalNorm: NormSpec;
}

/** @throws AppError `invalid_checkpoint`, also for tensors that nothing uses, `invalid_config`, or what ONNX Runtime reports */
export async function loadTarget(options: LoadTargetOptions): Promise<LoadedTarget> {
  const { runtime, folder, format } = options;
  const { spec, eosTokenIds } = options.config;
  const precision = precisionOf(format, options.device.kind);
  const { compute } = precision;
  const maxContext = options.maxContext ?? spec.maxPositions;
  if (maxContext > spec.maxPositions) {
    throw new AppError(
      'invalid_config',
      `Expected a context of at most ${spec.maxPositions} positions, as the model was made for, got ${maxContext}`,
    );
  }
  const outOfRange = options.taps.find((tap) => !Number.isInteger(tap) || tap < EMBEDDING_TAP || tap > spec.layers.length);
  if (outOfRange !== undefined) {
    throw new AppError(
      'incompatible_drafter',
      `Expected taps of layers 0 to ${spec.layers.length - 1}, -1 for the embedding or ${spec.layers.length} for the final norm, ` +
        `got ${outOfRange}; correct the layer ids, or use a drafter that was trained for this target`,
    );
  }
  requireDevice(runtime, options.device);
  const checkpoint = await openCheckpoint(folder);
  if (options.allowUnclaimed !== true) refuseUnclaimedTensors(checkpoint, spec, folder);
  const prepared = await prepareWeights({
    checkpoint,
    plan: planDecoderWeights(spec),
    format,
    compute,
    ...(options.cacheDir === null ? {} : { outDir: options.cacheDir }),
    ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const embeddingFormat = spec.tiedHead ? tableFormat(precision) : floatFormat(prepared.get(embeddingWeight(spec))?.dtype);

  const weights = new WeightTensors(runtime, prepared);
  addDerivedWeights(runtime, spec, weights, compute);
  const positions = maxContext + sparePositions(spec.attention.headDim);
  const tables = ropeTables(spec.rope, positions);
  const tableShape = [positions, spec.rope.dims / 2];
  weights.add(ROPE_COS, floatTensor(runtime, compute, tableShape, tables.cos));
  weights.add(ROPE_SIN, floatTensor(runtime, compute, tableShape, tables.sin));

  const target = await OnnxTarget.create(runtime, spec, weights, {
    device: options.device,
    maxSequences: options.maxSequences,
    maxRows: options.maxRows,
    maxContext,
    ...(options.maxCaches === undefined ? {} : { maxCaches: options.maxCaches }),
    eosTokenIds,
    taps: options.taps,
    formats: { precision, embeddingFormat },
    ...(options.onFewerSequences === undefined ? {} : { onFewerSequences: options.onFewerSequences }),
  });
  return {
    target,
    checkpoint,
    embedding: { weight: embeddingWeight(spec), vocab: spec.vocab, hidden: spec.hidden, format: embeddingFormat },
    head: { weight: headWeight(spec), inFeatures: spec.hidden, outFeatures: spec.vocab, format: precision.head },
    finalNorm: { weight: normFactors(spec, finalNormWeight(spec)), size: spec.hidden, epsilon: spec.normEpsilon },
  };
}

/** Of a table that is the head, too. */
function tableFormat({ head }: Precision): EmbeddingFormat {
  return head === 'int4' ? 'int8' : head;
}

function floatFormat(dtype: string | undefined): EmbeddingFormat {
  if (dtype === 'F16') return 'f16';
  if (dtype === 'BF16') return 'bf16';
  return 'f32';
}
