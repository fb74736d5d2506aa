/** The recurrent layers of a target: their states go into and out of each step, and rows are taken back from them. */
import { type GatedDeltaShape, mixedWidth, stateNames, stateShape, windowShape } from '../graph/gated-delta.ts';
import type { PooledCache } from '../model/kv-cache.ts';
import { type RecurrentShape, RecurrentTensors, type Replay } from '../model/recurrent-state.ts';
import type { SlotSession } from '../model/slot-sessions.ts';
import { StepTensors } from '../model/step-tensors.ts';
import type { Device } from '../onnx/device.ts';
import type { IoBinding } from '../onnx/io-binding.ts';
import type { PrepackedWeights } from '../onnx/prepacked-weights.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { Session } from '../onnx/session.ts';
import { OwnedTensor } from '../onnx/tensor.ts';
import type { WeightTensors } from '../onnx/weight-tensors.ts';
import { type DecoderSpec, layersWith } from './decoder-spec.ts';
import { buildReplayGraph, REPLAYED_ROWS } from './replay-graph.ts';
import { IO } from './step-io.ts';
import type { StepLayout } from './step-layout.ts';

export function recurrentShape(spec: DecoderSpec): RecurrentShape | null {
  if (spec.gatedDelta === null) return null;
  return {
    layers: layersWith(spec, 'gated-delta').length,
    window: windowShape(spec.gatedDelta),
    state: stateShape(spec.gatedDelta),
  };
}

export interface RecurrenceParts {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  readonly spec: DecoderSpec;
  readonly weights: WeightTensors;
  readonly prepacked: PrepackedWeights;
}

export class Recurrence implements Disposable {
  readonly #layers: readonly number[];
  readonly #shape: GatedDeltaShape;
  readonly #tensors: StepTensors;
  /** The state before the first row, the same in all layers. */
  readonly #zeroWindow: OwnedTensor<'f32'>;
  readonly #zeroState: OwnedTensor<'f32'>;
  /** Takes what slots without a sequence write. */
  readonly #scratch: RecurrentTensors;
  readonly #session: Session;
  readonly #replaying: IoBinding;
  /** Caches whose last step can still be undone. */
  readonly #unsettled = new Set<PooledCache>();
  /** Rows in the record of the last step. */
  #recorded = 1;

  private constructor({ runtime, spec }: RecurrenceParts, shape: RecurrentShape, session: Session) {
    this.#layers = layersWith(spec, 'gated-delta');
    this.#shape = spec.gatedDelta as GatedDeltaShape;
    this.#tensors = new StepTensors(runtime);
    this.#zeroWindow = OwnedTensor.allocate(runtime, 'f32', shape.window);
    this.#zeroState = OwnedTensor.allocate(runtime, 'f32', shape.state);
    for (const tensor of [this.#zeroWindow, this.#zeroState]) tensor.data.fill(0);
    this.#scratch = new RecurrentTensors(runtime, { ...shape, layers: 1 });
    this.#session = session;
    this.#replaying = session.createBinding();
  }

  /** Null when the decoder has no recurrent layers. */
  static async create(parts: RecurrenceParts): Promise<Recurrence | null> {
    const shape = recurrentShape(parts.spec);
    if (shape === null) return null;
    const graph = buildReplayGraph(parts.spec);
    const initializers = new Map(graph.weights.map(({ name }) => [name, parts.weights.get(name)]));
    const { device, prepacked } = parts;
    const session = await Session.create(parts.runtime, graph.model, { initializers, prepacked, device });
    return new Recurrence(parts, shape, session);
  }

  /**
   * Brings the states of all caches to where these were cut, as the record they are replayed from ends with the next
   * step. When it is aborted, it can be called again.
   */
  async settle(signal?: AbortSignal): Promise<void> {
    for (const cache of this.#unsettled) {
      const replay = cache.disposed ? null : (cache.recurrent?.replay() ?? null);
      if (replay !== null) await this.#replay(replay, signal);
      cache.recurrent?.settle();
      this.#unsettled.delete(cache);
    }
  }

  async #replay(replay: Replay, signal?: AbortSignal): Promise<void> {
    const rows = this.#tensors.shaped(REPLAYED_ROWS, 'i64', [1, replay.rows]);
    for (let i = 0; i < replay.rows; i++) rows.data[i] = BigInt(replay.firstRow + i);
    this.#replaying.input(REPLAYED_ROWS, rows);
    for (const layer of this.#layers) {
      for (const [name, tensor] of this.#record(layer)) this.#replaying.input(name, tensor);
    }
    this.#bindStates(this.#replaying, 0, replay.from, replay.into);
    await this.#replaying.run(signal);
  }

  /** Binds what a step's graph has for its recurrent layers. */
  bind(session: SlotSession, layout: StepLayout, caches: readonly PooledCache[]): void {
    const { binding } = session;
    const rows = (name: string, shape: readonly number[], values: BigInt64Array) => {
      const tensor = this.#tensors.shaped(name, 'i64', shape);
      tensor.data.set(values);
      binding.input(name, tensor);
    };
    this.#recorded = layout.recordedRows.length;
    rows(IO.recordedRows, [this.#recorded], layout.recordedRows);
    for (const layer of this.#layers) for (const [name, tensor] of this.#record(layer)) binding.output(name, tensor);
    for (let slot = 0; slot < session.slots; slot++) {
      const own = layout.ownRows(slot);
      rows(IO.ownRows(slot), [1, own.length], own);
      const state = caches[slot]?.recurrent ?? null;
      this.#bindStates(binding, slot, state?.past ?? null, state?.present ?? null);
    }
  }

  /** The record's tensors of a layer, in the shape of the last step. */
  #record(layer: number): (readonly [string, OwnedTensor<'f32'>])[] {
    const { mixed, decay, rate } = IO.record(layer);
    const { valueHeads } = this.#shape;
    const tensor = (name: string, width: number) => this.#tensors.shaped(name, 'f32', [this.#recorded, width]);
    return [
      [mixed, tensor(mixed, mixedWidth(this.#shape))],
      [decay, tensor(decay, valueHeads)],
      [rate, tensor(rate, valueHeads)],
    ];
  }

  #bindStates(binding: IoBinding, slot: number, past: RecurrentTensors | null, present: RecurrentTensors | null): void {
    for (const [index, layer] of this.#layers.entries()) {
      const names = stateNames(layer, slot);
      const into = present ?? this.#scratch;
      const at = present === null ? 0 : index;
      binding.input(names.pastWindow, past?.windows[index] ?? this.#zeroWindow);
      binding.input(names.pastState, past?.states[index] ?? this.#zeroState);
      binding.output(names.presentWindow, into.windows[at] as OwnedTensor<'f32'>);
      binding.output(names.presentState, into.states[at] as OwnedTensor<'f32'>);
    }
  }

  /** A step has absorbed its rows, and can be undone until {@link settle}. */
  absorbed(caches: readonly PooledCache[]): void {
    for (const cache of caches) this.#unsettled.add(cache);
  }

  /** No step may be in flight. */
  [Symbol.dispose](): void {
    this.#replaying[Symbol.dispose]();
    this.#session[Symbol.dispose]();
    this.#tensors[Symbol.dispose]();
    this.#scratch[Symbol.dispose]();
    this.#zeroWindow[Symbol.dispose]();
    this.#zeroState[Symbol.dispose]();
  }
}
