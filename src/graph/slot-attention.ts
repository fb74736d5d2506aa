/**
 * Attention of several sequences over their own caches, in one graph.
 *
 * ONNX Runtime's GroupQueryAttention takes either many sequences or many rows, not both, once there is a cache. So each
 * slot, which serves one sequence in a run, has a node of its own; the matrix products around them work on all rows.
 */
import { type GraphBuilder, MICROSOFT, type Value } from './graph-builder.ts';

export interface AttentionShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** Inputs of one slot, shared by all layers. */
export interface SlotInputs {
  readonly index: number;
  /** [1] of i32: cached positions after the run, minus one. */
  readonly lastPosition: Value;
  /** Scalar of i32: cached positions after the run. */
  readonly total: Value;
  /** [1, 1, slotRows, total]; only where a layer needs it. */
  readonly windowBias: Value | null;
}

/** Names of a layer's cache tensors in a slot; [1, kvHeads, capacity, headDim] each, updated in place. */
export function cacheNames(layer: number, slot: number) {
  return {
    pastKey: `slot.${slot}.layer.${layer}.past_key`,
    pastValue: `slot.${slot}.layer.${layer}.past_value`,
    presentKey: `slot.${slot}.layer.${layer}.present_key`,
    presentValue: `slot.${slot}.layer.${layer}.present_value`,
  };
}

export function declareSlot(graph: GraphBuilder, index: number, withWindowBias = false): SlotInputs {
  return {
    index,
    lastPosition: graph.input(`slot.${index}.last_position`, 'i32', [1]),
    total: graph.input(`slot.${index}.total`, 'i32', []),
    windowBias: withWindowBias
      ? graph.cast(
          graph.input(windowBiasName(index), 'f32', [1, 1, `slot_rows.${index}`, `total.${index}`]),
          'f32',
          graph.compute,
        )
      : null,
  };
}

export interface RotaryTables {
  /** Names of the tables [positions, headDim / 2]. */
  readonly cos: Value;
  readonly sin: Value;
}

export interface SlotAttentionSpec extends AttentionShape {
  readonly layer: number;
  /** Null: queries and keys come rotated. */
  readonly rotary: RotaryTables | null;
  /** False: every row of the run sees all others, as in a block of masked tokens. */
  readonly causal: boolean;
  /** Positions that a row may look back, itself included; null: all. */
  readonly window: number | null;
}

/** Whether a layer needs {@link windowBias}: the attention node has a window of its own only where it is causal. */
export function needsWindowBias(spec: Pick<SlotAttentionSpec, 'causal' | 'window'>): boolean {
  return !spec.causal && spec.window !== null;
}

/** Name of the input [1, 1, slotRows, total] that {@link windowBias} fills. */
export function windowBiasName(slot: number): string {
  return `slot.${slot}.window_bias`;
}

/**
 * What is added to the scores of a slot whose rows see `window` positions on either side: 0 inside, -Infinity outside.
 * @param rows of the run; they have the last positions of `total`
 * @param bias [rows, total], overwritten
 */
export function windowBias(rows: number, total: number, window: number, bias: Float32Array): void {
  for (let row = 0; row < rows; row++) {
    const position = total - rows + row;
    for (let key = 0; key < total; key++) {
      bias[row * total + key] = Math.abs(position - key) < window ? 0 : Number.NEGATIVE_INFINITY;
    }
  }
}

/**
 * Rotates queries and keys unless they are, appends keys and values to the slot's cache, and attends.
 * @param query [1, rows, heads · headDim], or queries, keys and values side by side when `key` and `value` are null
 * @param key [1, rows, kvHeads · headDim]
 * @param value [1, rows, kvHeads · headDim]
 * @returns [1, rows, heads · headDim]
 */
export function slotAttention(
  graph: GraphBuilder,
  slot: SlotInputs,
  query: Value,
  key: Value | null,
  value: Value | null,
  spec: SlotAttentionSpec,
): Value {
  const cacheShape = [1, spec.kvHeads, `capacity.${slot.index}`, spec.headDim] as const;
  const names = cacheNames(spec.layer, slot.index);
  const output = `slot.${slot.index}.layer.${spec.layer}.attention`;
  graph.nodes(
    'GroupQueryAttention',
    [
      query,
      key ?? '',
      value ?? '',
      graph.input(names.pastKey, graph.compute, cacheShape),
      graph.input(names.pastValue, graph.compute, cacheShape),
      slot.lastPosition,
      slot.total,
      ...(spec.rotary === null ? [] : [spec.rotary.cos, spec.rotary.sin]),
      ...(needsWindowBias(spec) ? [...(spec.rotary === null ? ['', ''] : []), '', slot.windowBias as Value] : []),
    ],
    [output, names.presentKey, names.presentValue],
    {
      domain: MICROSOFT,
      attributes: {
        num_heads: BigInt(spec.heads),
        kv_num_heads: BigInt(spec.kvHeads),
        do_rotary: spec.rotary === null ? 0n : 1n,
        rotary_interleaved: 0n,
        scale: 1 / Math.sqrt(spec.headDim),
        ...(spec.causal ? {} : { causal: 0n }),
        ...(spec.causal && spec.window !== null ? { local_window_size: BigInt(spec.window) } : {}),
      },
    },
  );
  graph.output(names.presentKey, graph.compute, cacheShape);
  graph.output(names.presentValue, graph.compute, cacheShape);
  return output;
}
