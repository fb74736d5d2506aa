/** The target port on an ONNX graph of a decoder. */
import { AppError } from '../core/app-error.ts';
import type { TokenId } from '../core/token.ts';
import { cacheNames } from '../graph/slot-attention.ts';
import { CachePool, CacheTensors, PooledCache } from '../model/kv-cache.ts';
import { type SlotSession, SlotSessions } from '../model/slot-sessions.ts';
import { StepTensors } from '../model/step-tensors.ts';
import type { Device } from '../onnx/device.ts';
import type { ElementType } from '../onnx/element-type.ts';
import { PrepackedWeights } from '../onnx/prepacked-weights.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { elementCount, type OwnedTensor } from '../onnx/tensor.ts';
import type { WeightTensors } from '../onnx/weight-tensors.ts';
import { LEAST_SLOT_ROWS, sparePositions } from './attended-rows.ts';
import { buildDecoderGraph, type DecoderGraphOptions } from './decoder-graph.ts';
import { type DecoderSpec, layersWith, rotatesPartly } from './decoder-spec.ts';
import { Recurrence, type RecurrenceParts, recurrentShape } from './recurrence.ts';
import { IO } from './step-io.ts';
import { StepLayout } from './step-layout.ts';
import type { RecurrentFacts, StepResult, StepSpan, Target, TargetFacts } from './target.ts';

export interface OnnxTargetOptions {
  readonly device: Device;
  readonly maxSequences: number;
  readonly maxRows: number;
  readonly maxContext: number;
  /** Caches that can be open at once. Default: `maxSequences`. */
  readonly maxCaches?: number;
  readonly eosTokenIds: readonly TokenId[];
  /** Layers whose residual stream comes out of each step. */
  readonly taps: readonly number[];
  readonly formats: Pick<DecoderGraphOptions, 'precision' | 'embeddingFormat'>;
  /** Told when {@link OnnxTarget.maxSequences} has fallen, and why. */
  readonly onFewerSequences?: (maxSequences: number, error: unknown) => void;
}

export class OnnxTarget implements Target {
  readonly facts: TargetFacts;
  readonly maxRows: number;
  readonly cacheBytesPerPosition: number;
  readonly recurrent?: RecurrentFacts;
  /** Shared with drafters that borrow the embedding and the head. They must be gone before the target is. */
  readonly weights: WeightTensors;
  readonly prepacked: PrepackedWeights;

  readonly #spec: DecoderSpec;
  readonly #attentionLayers: readonly number[];
  readonly #options: OnnxTargetOptions;
  readonly #sessions: SlotSessions;
  readonly #pool: CachePool;
  /** Stands in for the missing sequences of a session that serves more than there are. */
  readonly #idle: CacheTensors;
  readonly #tensors: StepTensors;
  /** Null when the decoder has no recurrent layers. */
  readonly #recurrence: Recurrence | null;
  #stepping = false;

  private constructor(parts: RecurrenceParts, recurrence: Recurrence | null, options: OnnxTargetOptions) {
    const { runtime, spec, weights, prepacked } = parts;
    this.#spec = spec;
    this.#options = options;
    this.#recurrence = recurrence;
    this.weights = weights;
    this.prepacked = prepacked;
    this.maxRows = options.maxRows;
    this.#attentionLayers = layersWith(spec, 'attention');
    const { kvHeads, headDim } = spec.attention;
    const shape = {
      layers: this.#attentionLayers.length,
      kvHeads,
      headDim,
      type: options.formats.precision.compute,
      sparePositions: sparePositions(headDim),
    };
    const recurrent = recurrentShape(spec);
    this.cacheBytesPerPosition = CacheTensors.bytesPerPosition(shape);
    if (recurrent !== null) {
      const elements = elementCount(recurrent.window) + elementCount(recurrent.state);
      this.recurrent = { bytesPerSequence: 2 * recurrent.layers * elements * Float32Array.BYTES_PER_ELEMENT };
    }
    this.facts = {
      family: spec.family,
      vocabSize: spec.vocab,
      hiddenSize: spec.hidden,
      layers: spec.layers.length,
      maxContext: options.maxContext,
      eosTokenIds: options.eosTokenIds,
    };
    this.#pool = new CachePool(runtime, { ...shape, recurrent }, options.maxContext, options.maxCaches ?? options.maxSequences);
    this.#tensors = new StepTensors(runtime);
    this.#idle = new CachePool(runtime, shape, LEAST_SLOT_ROWS, 1).open().tensors;
    this.#sessions = new SlotSessions({
      runtime,
      device: options.device,
      weight: (name) => weights.get(name),
      prepacked: this.prepacked,
      maxSlots: options.maxSequences,
      build: (slots) =>
        buildDecoderGraph(spec, {
          slots,
          taps: options.taps,
          positions: options.maxContext + shape.sparePositions,
          ...options.formats,
        }),
      ...(options.onFewerSequences === undefined ? {} : { onFewer: options.onFewerSequences }),
    });
  }

  /**
   * Ready for one sequence at a time when it returns; sessions for more are loaded in the background.
   * @param weights everything the graph names; taken over
   */
  static async create(
    runtime: OnnxRuntime,
    spec: DecoderSpec,
    weights: WeightTensors,
    options: OnnxTargetOptions,
  ): Promise<OnnxTarget> {
    const parts = { runtime, device: options.device, spec, weights, prepacked: new PrepackedWeights(runtime) };
    const target = new OnnxTarget(parts, await Recurrence.create(parts), options);
    await target.#sessions.serving(1);
    return target;
  }

  /** Loads the sessions for several sequences, so that no request waits for them. */
  async warmUp(): Promise<void> {
    await this.#sessions.loadAll();
  }

  get maxSequences(): number {
    return this.#sessions.maxSlots;
  }

  async prepare(sequences: number): Promise<void> {
    await this.#sessions.prepare(sequences);
  }

  openCache(): PooledCache {
    return this.#pool.open();
  }

  async step(spans: readonly StepSpan[], signal?: AbortSignal): Promise<StepResult> {
    if (this.#stepping) throw new AppError('internal', 'A target serves one step at a time, and one is in flight');
    const caches = this.#checked(spans);
    this.#stepping = true;
    try {
      await this.#recurrence?.settle(signal);
      const session = await this.#sessions.serving(spans.length);
      const layout = new StepLayout(spans, session.slots, this.#spec.attention.headDim);
      this.#bindInputs(session, layout, caches);
      this.#recurrence?.bind(session, layout, caches);
      const result = this.#bindOutputs(session, layout);
      await session.binding.run(signal);
      for (const [index, span] of spans.entries()) caches[index]?.grow(span.tokens.length, layout.recordedFrom(index));
      this.#recurrence?.absorbed(caches);
      return result;
    } finally {
      this.#stepping = false;
    }
  }

  /** @throws AppError when the spans cannot be computed as they are; nothing has been touched then */
  #checked(spans: readonly StepSpan[]): PooledCache[] {
    const rows = spans.reduce((sum, span) => sum + span.tokens.length, 0);
    if (spans.length === 0 || spans.length > this.maxSequences || rows > this.maxRows) {
      throw new AppError(
        'internal',
        `Expected 1 to ${this.maxSequences} spans of at most ${this.maxRows} rows, got ${spans.length} of ${rows}`,
      );
    }
    return spans.map((span) => {
      if (!(span.cache instanceof PooledCache)) throw new AppError('internal', 'A span names a cache of another target');
      if (span.tokens.length === 0) throw new AppError('internal', 'Expected a span with at least one token, got none');
      const length = span.cache.length + span.tokens.length;
      if (length > span.cache.capacity) {
        throw new AppError(
          'context_length_exceeded',
          `Expected at most ${span.cache.capacity} positions in a sequence, got ${length}; shorten the prompt or the answer`,
          { details: { maxContext: span.cache.capacity, length } },
        );
      }
      return span.cache;
    });
  }

  #bindInputs(session: SlotSession, layout: StepLayout, caches: readonly PooledCache[]): void {
    const { binding } = session;
    const bind = <T extends ElementType>(
      name: string,
      type: T,
      shape: readonly number[],
      fill: (data: OwnedTensor<T>['data']) => void,
    ) => {
      const tensor = this.#tensors.shaped(name, type, shape);
      fill(tensor.data);
      binding.input(name, tensor);
    };
    bind(IO.ids, 'i64', [layout.rows], (data) => {
      let row = 0;
      for (const span of layout.spans) for (const token of span.tokens) data[row++] = BigInt(token);
    });
    if (rotatesPartly(this.#spec)) {
      bind(IO.positions, 'i64', [1, layout.rows], (data) => {
        let row = 0;
        for (const { cache, tokens } of layout.spans) for (const i of tokens.keys()) data[row++] = BigInt(cache.length + i);
      });
    }
    bind(IO.attended, 'i64', [layout.rows], (data) => data.set(layout.attended));
    bind(IO.logitRows, 'i64', [layout.wantedRows], (data) => data.set(layout.logitRows));
    bind(IO.topK, 'i64', [1], (data) => data.fill(1n));
    for (let slot = 0; slot < session.slots; slot++) {
      const rows = layout.slotRows(slot);
      bind(IO.slotRows(slot), 'i64', [1, rows.length], (data) => data.set(rows));
      const length = caches[slot]?.length ?? 0;
      const total = length + rows.length;
      bind(`slot.${slot}.last_position`, 'i32', [1], (data) => data.fill(total - 1));
      bind(`slot.${slot}.total`, 'i32', [], (data) => data.fill(total));
      const { keys, values } = caches[slot]?.tensors ?? this.#idle;
      for (const [index, layer] of this.#attentionLayers.entries()) {
        const names = cacheNames(layer, slot);
        const key = keys[index] as OwnedTensor;
        const value = values[index] as OwnedTensor;
        binding.input(names.pastKey, key);
        binding.input(names.pastValue, value);
        binding.output(names.presentKey, key);
        binding.output(names.presentValue, value);
      }
    }
  }

  #bindOutputs(session: SlotSession, layout: StepLayout): StepResult {
    const { vocab, hidden } = this.#spec;
    const bind = <T extends ElementType>(name: string, type: T, shape: readonly number[]) => {
      const tensor = this.#tensors.shaped(name, type, shape);
      session.binding.output(name, tensor);
      return tensor;
    };
    const logits = bind(IO.logits, 'f32', [layout.wantedRows, vocab]);
    const topIds = bind(IO.topIds, 'i64', [layout.wantedRows, 1]);
    bind(IO.topLogits, 'f32', [layout.wantedRows, 1]);
    const taps = new Map(this.#options.taps.map((layer) => [layer, bind(IO.tap(layer), 'f32', [layout.rows, hidden])]));
    return {
      taps,
      firstRow: (span) => layout.firstRow(span),
      greedy: (span, row) => Number(topIds.data[layout.logitRow(span, row)]),
      logits: (span, row) => {
        const index = layout.logitRow(span, row);
        return logits.data.subarray(index * vocab, (index + 1) * vocab);
      },
    };
  }

  /** No step may be in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sessions[Symbol.asyncDispose]();
    this.#recurrence?.[Symbol.dispose]();
    this.#tensors[Symbol.dispose]();
    this.#idle[Symbol.dispose]();
    this.#pool[Symbol.dispose]();
    this.prepacked[Symbol.dispose]();
    this.weights[Symbol.dispose]();
  }
}
