/** A DFlash drafter, ready to be run under any assumption on recorded sequences. */
import { openCheckpoint } from '../../checkpoint/checkpoint.ts';
import { prepareWeights } from '../../checkpoint/prepare-weights.ts';
import type { WeightFormat } from '../../checkpoint/weight-plan.ts';
import { AppError } from '../../core/app-error.ts';
import type { BorrowedTarget } from '../../drafter/borrowed-target.ts';
import type { DflashConfig } from '../../drafter/dflash/dflash-config.ts';
import { OWN_EMBEDDING, OWN_HEAD, ownTables, planDflashWeights, refuseUnclaimed } from '../../drafter/dflash/dflash-weights.ts';
import { readKeptTokens } from '../../drafter/dflash/kept-tokens.ts';
import { refuseMismatch } from '../../drafter/dflash/target-mismatch.ts';
import type { EmbeddingFormat, EmbeddingSpec } from '../../graph/embedding.ts';
import type { LinearSpec } from '../../graph/linear.ts';
import { ropeTables } from '../../graph/rope.ts';
import { StepTensors } from '../../model/step-tensors.ts';
import { CPU } from '../../onnx/device.ts';
import type { ElementType } from '../../onnx/element-type.ts';
import type { IoBinding } from '../../onnx/io-binding.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import { Session } from '../../onnx/session.ts';
import { OwnedTensor } from '../../onnx/tensor.ts';
import { WeightTensors } from '../../onnx/weight-tensors.ts';
import { type RecordedSequence, recordedRows } from '../recording/recorded-sequence.ts';
import type { Assumption } from './assumption.ts';
import { blockBias, contextBias } from './attention-bias.ts';
import type { FeatureSource } from './feature-source.ts';
import { KeptTokens } from './kept-tokens.ts';
import type { Predictions } from './predictions.ts';
import { buildProbeGraph, PROBE_IO } from './probe-graph.ts';

const DRAFT_HEAD_WEIGHT = 'draft_head.weight';

export interface OpenDrafterProbeOptions {
  readonly runtime: OnnxRuntime;
  readonly folder: string;
  readonly config: DflashConfig;
  readonly format: WeightFormat;
  readonly target: BorrowedTarget;
  readonly features: FeatureSource;
  readonly cacheDir: string | null;
  /** Accept tensors that nothing here knows; default: no. */
  readonly allowUnclaimed?: boolean;
  /** Changes copies of the drafter's own tensors of 32-bit floats in place; default: nothing. */
  readonly changeWeights?: (name: string, values: Float32Array) => void;
  readonly signal?: AbortSignal;
}

export class DrafterProbe implements Disposable {
  readonly config: DflashConfig;
  /** Null: it chooses among all tokens. */
  readonly keptTokens: KeptTokens | null;
  readonly #options: OpenDrafterProbeOptions;
  readonly #weights: readonly WeightTensors[];
  readonly #session: Session;
  readonly #binding: IoBinding;
  readonly #tensors: StepTensors;
  readonly #ropes = new Map<string, ReturnType<typeof ropeTables>>();
  /** By sequence and assumption: the same are asked about as a base, on few prompts and then on all, and under shifted labels. */
  readonly #known = new WeakMap<RecordedSequence, Map<string, Predictions>>();

  private constructor(
    options: OpenDrafterProbeOptions,
    keptTokens: KeptTokens | null,
    weights: readonly WeightTensors[],
    session: Session,
  ) {
    this.#options = options;
    this.keptTokens = keptTokens;
    this.config = options.config;
    this.#weights = weights;
    this.#session = session;
    this.#binding = session.createBinding();
    this.#tensors = new StepTensors(options.runtime);
  }

  /** @throws AppError `incompatible_drafter`, `invalid_checkpoint`, or what ONNX Runtime reports */
  static async open(options: OpenDrafterProbeOptions): Promise<DrafterProbe> {
    const { runtime, folder, config, target, format } = options;
    const checkpoint = await openCheckpoint(folder);
    if (config.draftsFromAnchor) {
      throw new AppError(
        'incompatible_drafter',
        `${folder}: expected a drafter whose slots predict the tokens at their positions, got sample_from_anchor; a diagnosis does not know such blocks, but validate does`,
      );
    }
    if (config.dflash2 !== null) {
      throw new AppError(
        'incompatible_drafter',
        `${folder}: expected a DFlash drafter, got one of DFlash 2; a diagnosis does not know its convolutions and candidates, but validate does`,
      );
    }
    const own = ownTables(config, checkpoint);
    refuseMismatch(config, target, own, folder);
    const plan = planDflashWeights(config, own);
    refuseUnclaimed(checkpoint, plan, folder, { besides: own.ids, allowUnclaimed: options.allowUnclaimed ?? false });
    const common = {
      format,
      ...(options.cacheDir === null ? {} : { outDir: options.cacheDir }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    };
    const locations = new Map(await prepareWeights({ checkpoint, plan, ...common }));
    const kept = await readKeptTokens(folder, config, checkpoint, own);
    let head: LinearSpec = target.head;
    if (own.head) {
      head = { weight: OWN_HEAD, inFeatures: config.hidden, outFeatures: config.draftVocab, format: target.head.format };
    } else if (kept !== null) {
      head = { weight: DRAFT_HEAD_WEIGHT, inFeatures: config.hidden, outFeatures: kept.length, format: target.head.format };
      const shape = [kept.length, config.hidden];
      const part = { name: DRAFT_HEAD_WEIGHT, source: target.head.weight, kind: 'head' as const, shape, rows: kept };
      const prepared = await prepareWeights({ checkpoint: target.checkpoint, plan: [part], ...common });
      for (const [name, location] of prepared) locations.set(name, location);
    }
    const embedding = own.embedding ? ownEmbedding(config, locations.get(OWN_EMBEDDING)?.dtype) : target.embedding;
    const keptTokens = kept === null ? null : new KeptTokens(kept);
    const weights = new WeightTensors(runtime, locations);
    const changed = new WeightTensors(runtime, new Map());
    try {
      const graph = buildProbeGraph(config, { format, embedding, head });
      const weight = (name: string) => {
        if (!weights.has(name)) return target.weight(name);
        const tensor = weights.get(name);
        if (options.changeWeights === undefined || tensor.type !== 'f32') return tensor;
        const values = (tensor as OwnedTensor<'f32'>).data.slice();
        options.changeWeights(name, values);
        changed.add(name, OwnedTensor.over(runtime, 'f32', tensor.shape, values));
        return changed.get(name);
      };
      const initializers = new Map(graph.weights.map(({ name }) => [name, weight(name)]));
      const session = await Session.create(runtime, graph.model, { initializers, prepacked: target.prepacked, device: CPU });
      return new DrafterProbe(options, keptTokens, [changed, weights], session);
    } catch (error) {
      changed[Symbol.dispose]();
      weights[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Fills the block behind every anchor of a sequence.
   * @throws AppError `aborted`, or what ONNX Runtime reports
   */
  async run(sequence: RecordedSequence, assumption: Assumption, signal?: AbortSignal): Promise<Predictions> {
    const known = this.#known.get(sequence) ?? new Map<string, Predictions>();
    this.#known.set(sequence, known);
    const key = JSON.stringify(assumption);
    const predictions = known.get(key) ?? (await this.#fill(sequence, assumption, signal));
    known.set(key, predictions);
    return predictions;
  }

  async #fill(sequence: RecordedSequence, assumption: Assumption, signal?: AbortSignal): Promise<Predictions> {
    const { config } = this;
    const { tokens, answerStart } = sequence;
    const anchors = Math.max(tokens.length - answerStart - 1, 0);
    const slots = assumption.blockSize;
    const rows = anchors * slots;
    if (rows === 0) return { anchors: 0, slots, ids: new Int32Array(0), probabilities: new Float32Array(0) };
    const context = recordedRows(sequence);

    const features = this.#bind(PROBE_IO.features, 'f32', [context, config.taps.length * config.targetHidden]);
    await this.#options.features.fill(sequence, assumption, features.data);
    const ids = this.#bind(PROBE_IO.blockIds, 'i64', [rows]);
    for (let row = 0; row < rows; row++) {
      const position = answerStart + Math.floor(row / slots) + (row % slots);
      ids.data[row] = BigInt(row % slots === 0 ? (tokens[position] as number) : assumption.maskTokenId);
    }
    this.#bindRotary(assumption, context, answerStart, anchors);
    const masks = new Map<string, { readonly context: OwnedTensor<'f32'>; readonly block: OwnedTensor<'f32'> }>();
    for (let layer = 0; layer < config.layers; layer++) {
      const attention = assumption.attention[layer] ?? { causal: false, window: null };
      const key = JSON.stringify(attention);
      let mask = masks.get(key);
      if (mask === undefined) {
        mask = {
          context: this.#tensors.shaped(`context_bias ${key}`, 'f32', [rows, 1, context]),
          block: this.#tensors.shaped(`block_bias ${key}`, 'f32', [rows, 1, slots]),
        };
        const shape = { anchors, slots, context, answerStart, edge: assumption.contextEdge };
        contextBias(shape, attention, mask.context.data);
        blockBias(shape, attention, mask.block.data);
        masks.set(key, mask);
      }
      this.#binding.input(PROBE_IO.contextBias(layer), mask.context);
      this.#binding.input(PROBE_IO.blockBias(layer), mask.block);
    }
    const ints = (name: string, values: readonly number[]) => {
      const { data } = this.#bind(name, 'i64', [values.length]);
      for (const [i, value] of values.entries()) data[i] = BigInt(value);
    };
    ints(PROBE_IO.keyShape, [anchors, slots, config.kvHeads, config.headDim]);
    ints(PROBE_IO.queryShape, [config.kvHeads, anchors, (slots * config.heads) / config.kvHeads, config.headDim]);
    ints(PROBE_IO.keyCounts, [context, slots]);

    const output = <T extends ElementType>(name: string, type: T, shape: readonly number[]): OwnedTensor<T> => {
      const tensor = this.#tensors.shaped(name, type, shape);
      this.#binding.output(name, tensor);
      return tensor;
    };
    const chosen = output(PROBE_IO.ids, 'i64', [rows, 1]);
    const probabilities = output(PROBE_IO.probabilities, 'f32', [rows, 1]);
    await this.#binding.run(signal);
    return {
      anchors,
      slots,
      ids: Int32Array.from(chosen.data, (row) => this.keptTokens?.token(Number(row)) ?? Number(row)),
      probabilities: probabilities.data.slice(),
    };
  }

  #bind<T extends ElementType>(name: string, type: T, shape: readonly number[]): OwnedTensor<T> {
    const tensor = this.#tensors.shaped(name, type, shape);
    this.#binding.input(name, tensor);
    return tensor;
  }

  #bindRotary(assumption: Assumption, context: number, answerStart: number, anchors: number): void {
    const half = this.config.headDim / 2;
    const positions = context + 2 * assumption.blockSize + Math.abs(assumption.blockShift) + 1;
    const key = JSON.stringify(assumption.rope);
    let tables = this.#ropes.get(key);
    if (tables === undefined || tables.cos.length < positions * half) {
      tables = ropeTables(assumption.rope, Math.ceil(positions * 1.5));
      this.#ropes.set(key, tables);
    }
    const { cos, sin } = tables;
    this.#bind(PROBE_IO.contextCos, 'f32', [context, 1, half]).data.set(cos.subarray(0, context * half));
    this.#bind(PROBE_IO.contextSin, 'f32', [context, 1, half]).data.set(sin.subarray(0, context * half));
    const rows = anchors * assumption.blockSize;
    const blockCos = this.#bind(PROBE_IO.blockCos, 'f32', [rows, 1, half]).data;
    const blockSin = this.#bind(PROBE_IO.blockSin, 'f32', [rows, 1, half]).data;
    for (let row = 0; row < rows; row++) {
      const slot = row % assumption.blockSize;
      const position = Math.max(answerStart + Math.floor(row / assumption.blockSize) + slot + assumption.blockShift, 0);
      blockCos.set(cos.subarray(position * half, (position + 1) * half), row * half);
      blockSin.set(sin.subarray(position * half, (position + 1) * half), row * half);
    }
  }

  /** No run may be in flight. */
  [Symbol.dispose](): void {
    this.#binding[Symbol.dispose]();
    this.#session[Symbol.dispose]();
    this.#tensors[Symbol.dispose]();
    for (const weights of this.#weights) weights[Symbol.dispose]();
  }
}

function ownEmbedding({ vocab, hidden }: DflashConfig, dtype: string | undefined): EmbeddingSpec {
  const format: EmbeddingFormat = dtype === 'F16' ? 'f16' : dtype === 'BF16' ? 'bf16' : 'f32';
  return { weight: OWN_EMBEDDING, vocab, hidden, format };
}
