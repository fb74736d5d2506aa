/**
 * The graph that takes a sequence's recurrent states from before a step to behind some of its rows, by the same nodes
 * that absorbed them. Everything before the recurrence was recorded, so that no projection is computed again.
 */
import { type GatedDeltaShape, mixedWidth, slotGatedDelta } from '../graph/gated-delta.ts';
import { type BuiltGraph, GraphBuilder } from '../graph/graph-builder.ts';
import { type DecoderSpec, layersWith } from './decoder-spec.ts';
import { convWeight } from './gated-delta-block.ts';
import { IO } from './step-io.ts';

/** [1, replayed] of i64: which of the recorded rows, in order. The states are those of slot 0. */
export const REPLAYED_ROWS = 'replayed_rows';

export function buildReplayGraph(spec: DecoderSpec): BuiltGraph {
  const graph = new GraphBuilder();
  const shape = spec.gatedDelta as GatedDeltaShape;
  const replayed = graph.input(REPLAYED_ROWS, 'i64', [1, 'replayed']);
  for (const layer of layersWith(spec, 'gated-delta')) {
    const names = IO.record(layer);
    const rows = {
      mixed: graph.input(names.mixed, 'f32', ['recorded', mixedWidth(shape)]),
      decay: graph.input(names.decay, 'f32', ['recorded', shape.valueHeads]),
      rate: graph.input(names.rate, 'f32', ['recorded', shape.valueHeads]),
    };
    slotGatedDelta(graph, rows, replayed, { slot: 0, layer, shape, convWeight: convWeight(spec, layer) });
  }
  return graph.build();
}
