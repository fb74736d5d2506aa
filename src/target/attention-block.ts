import type { GraphBuilder, Value } from '../graph/graph-builder.ts';
import { linear } from '../graph/linear.ts';
import { headNorm } from '../graph/norm.ts';
import { partialRotary } from '../graph/partial-rotary.ts';
import { type RotaryTables, slotAttention } from '../graph/slot-attention.ts';
import { type BlockContext, joinSlots } from './block-context.ts';
import { layerPrefix } from './decoder-spec.ts';
import { normFactors } from './derived-weights.ts';

/** Names of the rotary tables [positions, rotated dimensions / 2], which are computed, not read. */
export const ROPE_COS = 'rope.cos';
export const ROPE_SIN = 'rope.sin';

/**
 * Attention over the whole context, optionally with a gate for each head's output (Qiu et al. 2025, arXiv 2505.06708).
 * @param x [rows, hidden], normalised
 * @returns [rows, hidden]
 */
export function attentionBlock(graph: GraphBuilder, x: Value, layer: number, context: BlockContext): Value {
  const { spec, format } = context;
  const { heads, kvHeads, headDim, headNorms, gated, qkvBias, outputBias } = spec.attention;
  const prefix = `${layerPrefix(spec, layer)}.self_attn`;
  const project = (part: string, outFeatures: number) =>
    linear(graph, x, {
      weight: `${prefix}.${part}.weight`,
      inFeatures: spec.hidden,
      outFeatures,
      format,
      ...(qkvBias ? { bias: `${prefix}.${part}.bias` } : {}),
    });
  const table = [context.tablePositions, spec.rope.dims / 2];
  const tables: RotaryTables = {
    cos: graph.weight(ROPE_COS, graph.compute, table),
    sin: graph.weight(ROPE_SIN, graph.compute, table),
  };
  const prepared = (value: Value, count: number, norm: string) => {
    const normed = headNorms
      ? headNorm(graph, value, count, {
          weight: normFactors(spec, `${prefix}.${norm}.weight`),
          size: headDim,
          epsilon: spec.normEpsilon,
        })
      : value;
    if (context.positions === null) return normed;
    return partialRotary(graph, normed, context.positions, { heads: count, dims: spec.rope.dims, tables });
  };

  const width = heads * headDim;
  const [ungated, gate] = gated
    ? splitGates(graph, project('q_proj', 2 * width), heads, headDim)
    : ([project('q_proj', width), null] as const);
  const query = prepared(ungated, heads, 'q_norm');
  const key = prepared(project('k_proj', kvHeads * headDim), kvHeads, 'k_norm');
  const value = project('v_proj', kvHeads * headDim);
  const perSlot = context.slots.map((slot) => {
    const rowsOf = (x: Value) => graph.node('Gather', [x, slot.rows]); // [1, slotRows, …]
    return slotAttention(graph, slot, rowsOf(query), rowsOf(key), rowsOf(value), {
      heads,
      kvHeads,
      headDim,
      layer,
      rotary: context.positions === null ? tables : null,
      causal: true,
      window: null,
    });
  });
  const attended = graph.node('Gather', [joinSlots(graph, perSlot, width), context.attended]);
  const output = gate === null ? attended : graph.node('Mul', [attended, graph.node('Sigmoid', [gate])]);
  return linear(graph, output, {
    weight: `${prefix}.o_proj.weight`,
    inFeatures: width,
    outFeatures: spec.hidden,
    format,
    ...(outputBias ? { bias: `${prefix}.o_proj.bias` } : {}),
  });
}

/**
 * Takes apart a projection that has each head's query and, behind it, its gate.
 * @param x [rows, heads · 2 · headDim]
 * @returns queries and gates, [rows, heads · headDim] each
 */
function splitGates(graph: GraphBuilder, x: Value, heads: number, headDim: number): readonly [Value, Value] {
  const perHead = graph.node('Reshape', [x, graph.ints([-1, heads, 2 * headDim])]);
  const halves = graph.nodes('Split', [perHead, graph.ints([headDim, headDim])], 2, { attributes: { axis: 2n } });
  return halves.map((half) => graph.node('Reshape', [half, graph.ints([-1, heads * headDim])])) as [Value, Value];
}
