import type { GraphBuilder, Value } from '../graph/graph-builder.ts';
import type { LinearFormat } from '../graph/linear.ts';
import type { SlotInputs } from '../graph/slot-attention.ts';
import type { DecoderSpec } from './decoder-spec.ts';

/** What the blocks of a graph share. The inputs are described in {@link IO}. */
export interface BlockContext {
  readonly spec: DecoderSpec;
  /** Of the matrices inside layers. */
  readonly format: LinearFormat;
  /** Length of the rotary tables. */
  readonly tablePositions: number;
  readonly ids: Value;
  readonly slots: readonly SlotRows[];
  readonly attended: Value;
  /** Null where the attention nodes rotate. */
  readonly positions: Value | null;
  /** Null without recurrent states. */
  readonly recordedRows: Value | null;
}

export interface SlotRows extends SlotInputs {
  readonly rows: Value;
  /** Null without recurrent states. */
  readonly ownRows: Value | null;
}

/** The results of the slots, [1, slotRows, width] each, one after the other: [all slots' rows, width]. */
export function joinSlots(graph: GraphBuilder, perSlot: readonly Value[], width: number): Value {
  const joined = perSlot.length === 1 ? (perSlot[0] as Value) : graph.node('Concat', perSlot, { attributes: { axis: 1n } });
  return graph.node('Reshape', [joined, graph.ints([-1, width])]);
}
