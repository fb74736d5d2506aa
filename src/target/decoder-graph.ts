/** The graph of one step of a dense decoder: rows of several sequences in, logits and taps out. */
import { type EmbeddingFormat, embedding } from '../graph/embedding.ts';
import { type BuiltGraph, GraphBuilder, type Value } from '../graph/graph-builder.ts';
import { type LinearFormat, linear } from '../graph/linear.ts';
import { addAndNorm, headNorm, rmsNorm } from '../graph/norm.ts';
import { declareSlot, type SlotInputs, slotAttention } from '../graph/slot-attention.ts';
import { swiglu } from '../graph/swiglu.ts';
import { type DecoderSpec, EMBEDDING_WEIGHT, FINAL_NORM_WEIGHT, headWeight, layerPrefix } from './decoder-spec.ts';

/** Names of the rotary tables [positions, headDim / 2], which are computed, not read. */
export const ROPE_COS = 'rope.cos';
export const ROPE_SIN = 'rope.sin';

export interface DecoderGraphOptions {
  /** Sequences that one run can serve. */
  readonly slots: number;
  readonly linearFormat: LinearFormat;
  readonly headFormat: LinearFormat;
  readonly embeddingFormat: EmbeddingFormat;
  /** Layers whose output (the residual stream after the layer) becomes an output of the graph. */
  readonly taps: readonly number[];
  /** Length of the rotary tables. */
  readonly positions: number;
}

/** Inputs and outputs by name. */
export const IO = {
  /** [rows] of i64: token ids, sequence after sequence. */
  ids: 'ids',
  /** [1, slotRows] of i64: the rows that a slot attends with. A slot with one row repeats it. */
  slotRows: (slot: number) => `slot.${slot}.rows`,
  /** [rows] of i64: where each row's attention stands among all slots' rows. */
  attended: 'attended',
  /** [wanted] of i64: the rows whose logits are computed. */
  logitRows: 'logit_rows',
  /** [1] of i64: how many of the largest logits come out sorted. */
  topK: 'top_k',
  /** [wanted, vocab] */
  logits: 'logits',
  /** [wanted, k], largest first. */
  topLogits: 'top_logits',
  /** [wanted, k] of i64; the smaller id first among equal logits. */
  topIds: 'top_ids',
  /** [rows, hidden] */
  tap: (layer: number) => `tap.${layer}`,
} as const;

export function buildDecoderGraph(spec: DecoderSpec, options: DecoderGraphOptions): BuiltGraph {
  const graph = new GraphBuilder();
  const ids = graph.input(IO.ids, 'i64', ['rows']);
  const slots = Array.from({ length: options.slots }, (_, index) => ({
    ...declareSlot(graph, index),
    rows: graph.input(IO.slotRows(index), 'i64', [1, `slot_rows.${index}`]),
  }));
  const attended = graph.input(IO.attended, 'i64', ['rows']);
  const logitRows = graph.input(IO.logitRows, 'i64', ['wanted']);
  const topK = graph.input(IO.topK, 'i64', [1]);
  const norm = (weight: string) => ({ weight, size: spec.hidden, epsilon: spec.normEpsilon });

  let residual = embedding(graph, ids, {
    weight: EMBEDDING_WEIGHT,
    vocab: spec.vocab,
    hidden: spec.hidden,
    format: options.embeddingFormat,
  });
  let normalised = rmsNorm(graph, residual, norm(`${layerPrefix(0)}.input_layernorm.weight`));
  for (let layer = 0; layer < spec.layers; layer++) {
    const prefix = layerPrefix(layer);
    const attention = attentionBlock(graph, normalised, slots, attended, layer, spec, options);
    const afterAttention = addAndNorm(graph, attention, residual, norm(`${prefix}.post_attention_layernorm.weight`));
    const feedForward = swiglu(graph, afterAttention.normalised, {
      prefix: `${prefix}.mlp`,
      hidden: spec.hidden,
      intermediate: spec.intermediate,
      format: options.linearFormat,
      bias: spec.mlpBias,
    });
    if (layer + 1 < spec.layers) {
      const next = norm(`${layerPrefix(layer + 1)}.input_layernorm.weight`);
      const afterLayer = addAndNorm(graph, feedForward, afterAttention.sum, next, IO.tap(layer));
      residual = afterLayer.sum;
      normalised = afterLayer.normalised;
    } else {
      residual = graph.node('Add', [feedForward, afterAttention.sum], { name: IO.tap(layer) });
    }
  }
  // Only wanted rows pass the final norm and the head: in a prompt that is one row of hundreds.
  const wanted = graph.node('Gather', [residual, logitRows]);
  const logits = linear(graph, rmsNorm(graph, wanted, norm(FINAL_NORM_WEIGHT)), {
    weight: headWeight(spec),
    inFeatures: spec.hidden,
    outFeatures: spec.vocab,
    format: options.headFormat,
    name: IO.logits,
  });
  graph.nodes('TopK', [logits, topK], [IO.topLogits, IO.topIds], { attributes: { axis: -1n, largest: 1n, sorted: 1n } });

  graph.output(IO.logits, 'f32', ['wanted', spec.vocab]);
  graph.output(IO.topLogits, 'f32', ['wanted', 'k']);
  graph.output(IO.topIds, 'i64', ['wanted', 'k']);
  for (const layer of options.taps) graph.output(IO.tap(layer), 'f32', ['rows', spec.hidden]);
  return graph.build();
}

/** @param x [rows, hidden], normalised */
function attentionBlock(
  graph: GraphBuilder,
  x: Value,
  slots: readonly (SlotInputs & { readonly rows: Value })[],
  attended: Value,
  layer: number,
  spec: DecoderSpec,
  options: DecoderGraphOptions,
): Value {
  const prefix = `${layerPrefix(layer)}.self_attn`;
  const project = (part: string, heads: number, bias: boolean) =>
    linear(graph, x, {
      weight: `${prefix}.${part}.weight`,
      inFeatures: spec.hidden,
      outFeatures: heads * spec.headDim,
      format: options.linearFormat,
      ...(bias ? { bias: `${prefix}.${part}.bias` } : {}),
    });
  const normed = (value: Value, heads: number, part: string) =>
    spec.headNorms
      ? headNorm(graph, value, heads, { weight: `${prefix}.${part}.weight`, size: spec.headDim, epsilon: spec.normEpsilon })
      : value;
  const query = normed(project('q_proj', spec.heads, spec.qkvBias), spec.heads, 'q_norm');
  const key = normed(project('k_proj', spec.kvHeads, spec.qkvBias), spec.kvHeads, 'k_norm');
  const value = project('v_proj', spec.kvHeads, spec.qkvBias);
  const tableShape = [options.positions, spec.rope.dims / 2];
  const rotary = { cos: graph.weight(ROPE_COS, 'f32', tableShape), sin: graph.weight(ROPE_SIN, 'f32', tableShape) };
  const perSlot = slots.map((slot) => {
    const rowsOf = (x: Value) => graph.node('Gather', [x, slot.rows]); // [1, slotRows, …]
    return slotAttention(graph, slot, rowsOf(query), rowsOf(key), rowsOf(value), {
      ...spec,
      layer,
      rotary,
      causal: true,
      window: null,
    });
  });
  const width = spec.heads * spec.headDim;
  const joined = perSlot.length === 1 ? (perSlot[0] as Value) : graph.node('Concat', perSlot, { attributes: { axis: 1n } });
  const rows = graph.node('Gather', [graph.node('Reshape', [joined, graph.ints([-1, width])]), attended]);
  return linear(graph, rows, {
    weight: `${prefix}.o_proj.weight`,
    inFeatures: width,
    outFeatures: spec.hidden,
    format: options.linearFormat,
    ...(spec.outputBias ? { bias: `${prefix}.o_proj.bias` } : {}),
  });
}
