/** A DFlash drafter: one forward proposes a whole block, from the target's own activations. */
import { AppError } from '../../core/app-error.ts';
import type { Position, TokenId } from '../../core/token.ts';
import { cacheNames, needsWindowBias, windowBias, windowBiasName } from '../../graph/slot-attention.ts';
import { CachePool, CacheTensors } from '../../model/kv-cache.ts';
import { type SlotSession, SlotSessions } from '../../model/slot-sessions.ts';
import { StepTensors } from '../../model/step-tensors.ts';
import type { Device } from '../../onnx/device.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import type { OwnedTensor } from '../../onnx/tensor.ts';
import type { WeightTensors } from '../../onnx/weight-tensors.ts';
import type { BorrowedTarget } from '../borrowed-target.ts';
import { type Drafter, type DraftRequest, type DraftState, type ForkedState, NO_PROPOSAL, type Proposal } from '../drafter.ts';
import { walkLattice } from './candidate-lattice.ts';
import { RowBuffers, type Taps } from './deferred-rows.ts';
import { type DflashConfig, firstDraftingSlot, longestDraft } from './dflash-config.ts';
import { buildDflashGraph, type DflashGraphOptions, DRAFT_IO } from './dflash-graph.ts';
import { DflashState } from './dflash-state.ts';
import { DraftLayout } from './draft-layout.ts';

export interface DflashParts {
  readonly runtime: OnnxRuntime;
  readonly device: Device;
  readonly config: DflashConfig;
  readonly target: BorrowedTarget;
  /** Everything that the graph names and the target does not have; taken over. */
  readonly weights: WeightTensors;
  readonly graph: Omit<DflashGraphOptions, 'slots'>;
  /** Target ids of the head's rows; null: the head has a row for every token. */
  readonly keptTokens: Int32Array | null;
}

/** What the last draft computed on its way; valid until the next one. */
export interface DraftActivations {
  /** After the final norm, [block rows, hidden]: an anchor and its masks, request after request. */
  readonly hidden: OwnedTensor<'f32'>;
  /** [draft tokens, head rows], request after request. */
  readonly logits: OwnedTensor<'f32'>;
}

export class DflashDrafter implements Drafter {
  readonly kind = 'dflash';
  readonly maxDraftTokens: number;
  readonly taps: readonly number[];
  readonly bytesPerPosition: number;
  readonly bytesPerSequence: number;
  readonly #parts: DflashParts;
  readonly #sessions: SlotSessions;
  readonly #pool: CachePool;
  readonly #idle: CacheTensors;
  readonly #tensors: StepTensors;
  readonly #rowBuffers: RowBuffers;
  #activations: DraftActivations | null = null;
  /** Window of the layers that need a bias; a config has one window for all its sliding layers. */
  readonly #biasWindow: number | null;

  private constructor(parts: DflashParts) {
    const { runtime, config, target, weights } = parts;
    this.#parts = parts;
    this.taps = config.taps;
    this.maxDraftTokens = longestDraft(config);
    this.#biasWindow = config.attention.find(needsWindowBias)?.window ?? null;
    const { layers, kvHeads, headDim } = config;
    const shape = { layers, kvHeads, headDim, type: parts.graph.precision.compute };
    this.bytesPerPosition = CacheTensors.bytesPerPosition(shape);
    this.#rowBuffers = new RowBuffers(config.taps, config.targetHidden);
    this.bytesPerSequence = this.#rowBuffers.bytes;
    // How many sequences there are is the host's to limit, which may keep some that have ended.
    this.#pool = new CachePool(runtime, shape, target.maxContext + config.blockSize, Number.POSITIVE_INFINITY);
    this.#idle = new CachePool(runtime, shape, 2, 1).open().tensors;
    this.#tensors = new StepTensors(runtime);
    this.#sessions = new SlotSessions({
      runtime,
      device: parts.device,
      weight: (name) => (weights.has(name) ? weights.get(name) : target.weight(name)),
      prepacked: target.prepacked,
      maxSlots: target.maxSequences,
      build: (slots) => buildDflashGraph(config, { ...parts.graph, slots }),
    });
  }

  /** Ready for one sequence at a time when it returns. */
  static async create(parts: DflashParts): Promise<DflashDrafter> {
    const drafter = new DflashDrafter(parts);
    await drafter.#sessions.serving(1);
    return drafter;
  }

  /** Loads the sessions for several sequences, so that no request waits for them. */
  async warmUp(): Promise<void> {
    await this.#sessions.loadAll();
  }

  /** For those who study a drafter; null before the first draft. */
  get activations(): DraftActivations | null {
    return this.#activations;
  }

  open(): DraftState {
    return new DflashState(this.#pool.open(), this.#rowBuffers);
  }

  fork(state: DraftState, length: Position): ForkedState {
    if (!(state instanceof DflashState)) throw new AppError('internal', 'The state to fork is one of another drafter');
    const cache = this.#pool.open();
    cache.copyFrom(state.cache, Math.min(length, state.cache.length));
    const fork = new DflashState(cache, this.#rowBuffers);
    return { state: fork, length: cache.length + fork.takeContext(state, length - cache.length) };
  }

  async propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    const asked = requests.flatMap(({ state, anchor, budget }, request) => {
      if (!(state instanceof DflashState)) throw new AppError('internal', 'A draft request names a state of another drafter');
      const capped = Math.min(budget, this.maxDraftTokens);
      // Without a draft to make, a run would cost nearly as much as with one: a few rows can wait for the next.
      if (capped === 0 && state.defer()) return [];
      return state.waitingRows === 0 && capped === 0 ? [] : [{ state, anchor, budget: capped, request }];
    });
    if (asked.length === 0) return requests.map(() => NO_PROPOSAL);
    const context = this.#context(asked.map(({ state }) => state));
    const slots = asked.map((slot, i) => ({ ...slot, contextRows: context.rows[i] as readonly number[] }));

    const session = await this.#sessions.serving(slots.length);
    const layout = new DraftLayout(slots, this.#parts.config.maskTokenId, firstDraftingSlot(this.#parts.config));
    this.#bindTaps(session, context.taps);
    this.#bindRows(session, layout, slots);
    const chosen = this.#bindOutputs(session, layout);
    await session.binding.run(signal);
    for (const { state } of slots) state.absorbed();

    const proposals: Proposal[] = requests.map(() => NO_PROPOSAL);
    for (const [slot, { request, budget }] of slots.entries()) {
      if (budget === 0) continue;
      const first = layout.firstDraft[slot] as number;
      proposals[request] = chosen(first, budget);
    }
    return proposals;
  }

  #token(headRow: bigint): TokenId {
    const row = Number(headRow);
    return this.#parts.keptTokens?.[row] ?? row;
  }

  /** The rows that each state has yet to take in, and where they lie: in the last step, or copied together. */
  #context(states: readonly DflashState[]): { readonly taps: Taps | null; readonly rows: readonly (readonly number[])[] } {
    if (states.every(({ deferredRows }) => deferredRows === 0)) {
      const taps = states.find(({ pendingTaps }) => pendingTaps !== null)?.pendingTaps ?? null;
      return { taps, rows: states.map(({ pendingRows }) => pendingRows) };
    }
    const total = states.reduce((sum, { waitingRows }) => sum + waitingRows, 0);
    const { targetHidden } = this.#parts.config;
    const taps = new Map(
      this.taps.map((layer) => [layer, this.#tensors.shaped(`deferred.${layer}`, 'f32', [total, targetHidden])]),
    );
    let first = 0;
    const rows = states.map((state) => {
      state.copyContext(taps, first);
      const own = Array.from({ length: state.waitingRows }, (_, i) => first + i);
      first += own.length;
      return own;
    });
    return { taps, rows };
  }

  #bindTaps(session: SlotSession, taps: Taps | null): void {
    for (const layer of new Set(this.taps)) {
      // Without new context any one row will do: no slot looks at it.
      const tap = taps?.get(layer) ?? this.#tensors.shaped('no-context', 'f32', [1, this.#parts.config.targetHidden]);
      session.binding.input(DRAFT_IO.tap(layer), tap);
    }
  }

  #bindRows(session: SlotSession, layout: DraftLayout, slots: readonly { readonly state: DflashState }[]): void {
    const { binding } = session;
    const rows = (name: string, shape: readonly number[], values: readonly number[]) => {
      const tensor = this.#tensors.shaped(name, 'i64', shape);
      for (const [i, value] of values.entries()) tensor.data[i] = BigInt(value);
      binding.input(name, tensor);
    };
    const int32 = (name: string, shape: readonly number[], value: number) => {
      const tensor = this.#tensors.shaped(name, 'i32', shape);
      tensor.data.fill(value);
      binding.input(name, tensor);
    };
    rows(DRAFT_IO.contextRows, [layout.contextRows.length], layout.contextRows);
    rows(DRAFT_IO.blockIds, [layout.blockIds.length], layout.blockIds);
    rows(DRAFT_IO.attended, [layout.attended.length], layout.attended);
    rows(DRAFT_IO.draftRows, [layout.draftRows.length], layout.draftRows);
    const { dflash2 } = this.#parts.config;
    if (dflash2 !== null) {
      for (let distance = 1; distance < dflash2.convWidth; distance++) {
        rows(DRAFT_IO.rowsBefore(distance), [layout.blockIds.length], layout.rowsBefore(distance));
      }
      rows(DRAFT_IO.anchors, [layout.anchors.length], layout.anchors);
      rows(DRAFT_IO.draftsBefore, [layout.draftsBefore.length], layout.draftsBefore);
    }
    for (let slot = 0; slot < session.slots; slot++) {
      const queries = layout.queryRows(slot);
      const keys = layout.keyRows(slot);
      rows(DRAFT_IO.queryRows(slot), [1, queries.length], queries);
      rows(DRAFT_IO.keyRows(slot), [1, keys.length], keys);
      const cache = slots[slot]?.state.cache;
      const total = (cache?.length ?? 0) + keys.length;
      int32(`slot.${slot}.last_position`, [1], total - 1);
      int32(`slot.${slot}.total`, [], total);
      if (this.#biasWindow !== null) {
        const bias = this.#tensors.shaped(windowBiasName(slot), 'f32', [1, 1, keys.length, total]);
        windowBias(keys.length, total, this.#biasWindow, bias.data);
        binding.input(windowBiasName(slot), bias);
      }
      const tensors = cache?.tensors ?? this.#idle;
      for (let layer = 0; layer < this.#parts.config.layers; layer++) {
        const names = cacheNames(layer, slot);
        const key = tensors.keys[layer] as OwnedTensor;
        const value = tensors.values[layer] as OwnedTensor;
        binding.input(names.pastKey, key);
        binding.input(names.pastValue, value);
        binding.output(names.presentKey, key);
        binding.output(names.presentValue, value);
      }
    }
  }

  /** @returns what reads a sequence's draft when the run is over: so many tokens from a draft row on */
  #bindOutputs(session: SlotSession, layout: DraftLayout): (first: number, budget: number) => Proposal {
    const { config, graph } = this.#parts;
    const drafts = layout.draftRows.length;
    const logits = this.#tensors.shaped(DRAFT_IO.logits, 'f32', [drafts, graph.head.outFeatures]);
    const hidden = this.#tensors.shaped(DRAFT_IO.hidden, 'f32', [layout.blockIds.length, config.hidden]);
    session.binding.output(DRAFT_IO.logits, logits);
    session.binding.output(DRAFT_IO.hidden, hidden);
    this.#activations = { hidden, logits };
    return config.dflash2 === null
      ? this.#bindChoices(session, drafts)
      : this.#bindLattice(session, drafts, config.dflash2.candidates);
  }

  #bindChoices({ binding }: SlotSession, drafts: number): (first: number, budget: number) => Proposal {
    const ids = this.#tensors.shaped(DRAFT_IO.ids, 'i64', [drafts, 1]);
    const probabilities = this.#tensors.shaped(DRAFT_IO.probabilities, 'f32', [drafts, 1]);
    binding.output(DRAFT_IO.ids, ids);
    binding.output(DRAFT_IO.probabilities, probabilities);
    return (first, budget) => ({
      tokens: Array.from({ length: budget }, (_, i) => this.#token(ids.data[first + i] as bigint)),
      probabilities: Array.from(probabilities.data.subarray(first, first + budget)),
    });
  }

  #bindLattice({ binding }: SlotSession, drafts: number, k: number): (first: number, budget: number) => Proposal {
    const candidates = this.#tensors.shaped(DRAFT_IO.candidates, 'i64', [drafts, k]);
    const lattice = this.#tensors.shaped(DRAFT_IO.lattice, 'f32', [drafts, k, k]);
    binding.output(DRAFT_IO.candidates, candidates);
    binding.output(DRAFT_IO.lattice, lattice);
    return (first, budget) => {
      const path = walkLattice(lattice.data.subarray(first * k * k), budget, k);
      return {
        tokens: path.map(({ index }, i) => Number(candidates.data[(first + i) * k + index])),
        probabilities: path.map(({ probability }) => probability),
      };
    };
  }

  /** No draft may be in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sessions[Symbol.asyncDispose]();
    this.#tensors[Symbol.dispose]();
    this.#idle[Symbol.dispose]();
    this.#pool[Symbol.dispose]();
    this.#parts.weights[Symbol.dispose]();
  }
}
