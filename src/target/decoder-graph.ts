/** The graph of one step of a decoder: rows of several sequences in, logits and taps out. */
import { type EmbeddingFormat, embedding } from '../graph/embedding.ts';
import { type BuiltGraph, GraphBuilder, type Value } from '../graph/graph-builder.ts';
import { linear, linearType } from '../graph/linear.ts';
import { mixtureOfExperts } from '../graph/mixture-of-experts.ts';
import { addAndNorm, rmsNorm } from '../graph/norm.ts';
import type { Precision } from '../graph/precision.ts';
import { declareSlot } from '../graph/slot-attention.ts';
import { swiglu } from '../graph/swiglu.ts';
import { attentionBlock } from './attention-block.ts';
import type { BlockContext } from './block-context.ts';
import {
  type DecoderSpec,
  embeddingWeight,
  finalNormWeight,
  headWeight,
  type LayerSpec,
  layerPrefix,
  rotatesPartly,
} from './decoder-spec.ts';
import { normFactors } from './derived-weights.ts';
import { gatedDeltaBlock } from './gated-delta-block.ts';
import { EMBEDDING_TAP, IO } from './step-io.ts';

export interface DecoderGraphOptions {
  /** Sequences that one run can serve. */
  readonly slots: number;
  readonly precision: Precision;
  readonly embeddingFormat: EmbeddingFormat;
  /** Places in the residual stream that become outputs of the graph; named as in {@link StepResult.taps}. */
  readonly taps: readonly number[];
  /** Length of the rotary tables. */
  readonly positions: number;
}

export function buildDecoderGraph(spec: DecoderSpec, options: DecoderGraphOptions): BuiltGraph {
  const { compute, linear: format, head } = options.precision;
  const graph = new GraphBuilder(compute);
  const ids = graph.input(IO.ids, 'i64', ['rows']);
  const recurrent = spec.gatedDelta !== null;
  const context: BlockContext = {
    spec,
    format,
    tablePositions: options.positions,
    ids,
    slots: Array.from({ length: options.slots }, (_, index) => ({
      ...declareSlot(graph, index),
      rows: graph.input(IO.slotRows(index), 'i64', [1, `slot_rows.${index}`]),
      ownRows: recurrent ? graph.input(IO.ownRows(index), 'i64', [1, `own_rows.${index}`]) : null,
    })),
    attended: graph.input(IO.attended, 'i64', ['rows']),
    positions: rotatesPartly(spec) ? graph.input(IO.positions, 'i64', [1, 'rows']) : null,
    recordedRows: recurrent ? graph.input(IO.recordedRows, 'i64', ['recorded']) : null,
  };
  const logitRows = graph.input(IO.logitRows, 'i64', ['wanted']);
  const topK = graph.input(IO.topK, 'i64', [1]);
  const norm = (weight: string) => ({ weight: normFactors(spec, weight), size: spec.hidden, epsilon: spec.normEpsilon });
  // Taps leave the graph in f32, whatever it computes in.
  const streamName = (layer: number) => (compute === 'f32' ? IO.tap(layer) : `stream.${layer}`);
  const tapStream = (layer: number) => {
    if (compute !== 'f32' && options.taps.includes(layer)) graph.cast(streamName(layer), compute, 'f32', IO.tap(layer));
  };
  const inputNorm = (layer: number) => norm(`${layerPrefix(spec, layer)}.input_layernorm.weight`);

  let residual = embedding(graph, ids, {
    weight: embeddingWeight(spec),
    vocab: spec.vocab,
    hidden: spec.hidden,
    format: options.embeddingFormat,
  });
  if (options.taps.includes(EMBEDDING_TAP)) graph.cast(residual, compute, 'f32', IO.tap(EMBEDDING_TAP));
  let normalised = rmsNorm(graph, residual, inputNorm(0));
  for (const [layer, { mixer, mlp }] of spec.layers.entries()) {
    const prefix = layerPrefix(spec, layer);
    const block = mixer === 'attention' ? attentionBlock : gatedDeltaBlock;
    const mixed = block(graph, normalised, layer, context);
    const afterMixer = addAndNorm(graph, mixed, residual, norm(`${prefix}.post_attention_layernorm.weight`));
    const feedForward = mlpBlock(graph, afterMixer.normalised, `${prefix}.mlp`, mlp, context);
    if (layer + 1 < spec.layers.length) {
      const afterLayer = addAndNorm(graph, feedForward, afterMixer.sum, inputNorm(layer + 1), streamName(layer));
      residual = afterLayer.sum;
      normalised = afterLayer.normalised;
    } else {
      residual = graph.node('Add', [feedForward, afterMixer.sum], { name: streamName(layer) });
    }
    tapStream(layer);
  }
  const finalNormTap = spec.layers.length;
  if (options.taps.includes(finalNormTap)) {
    graph.cast(rmsNorm(graph, residual, norm(finalNormWeight(spec))), compute, 'f32', IO.tap(finalNormTap));
  }
  // Only wanted rows pass the final norm and the head: in a prompt that is one row of hundreds.
  const wanted = graph.node('Gather', [residual, logitRows]);
  const type = linearType(graph, head);
  const computed = linear(graph, rmsNorm(graph, wanted, norm(finalNormWeight(spec))), {
    weight: headWeight(spec),
    inFeatures: spec.hidden,
    outFeatures: spec.vocab,
    format: head,
    ...(type === 'f32' ? { name: IO.logits } : {}),
  });
  const logits = type === 'f32' ? computed : graph.cast(computed, type, 'f32', IO.logits);
  graph.nodes('TopK', [logits, topK], [IO.topLogits, IO.topIds], { attributes: { axis: -1n, largest: 1n, sorted: 1n } });

  graph.output(IO.logits, 'f32', ['wanted', spec.vocab]);
  graph.output(IO.topLogits, 'f32', ['wanted', 'k']);
  graph.output(IO.topIds, 'i64', ['wanted', 'k']);
  for (const layer of options.taps) graph.output(IO.tap(layer), 'f32', ['rows', spec.hidden]);
  return graph.build();
}

/** @param x [rows, hidden], normalised */
function mlpBlock(graph: GraphBuilder, x: Value, prefix: string, mlp: LayerSpec['mlp'], context: BlockContext): Value {
  const common = { prefix, hidden: context.spec.hidden, format: context.format };
  return mlp.kind === 'dense' ? swiglu(graph, x, { ...common, ...mlp }) : mixtureOfExperts(graph, x, { ...common, ...mlp });
}
