/**
 * A DFlash drafter as training runs it: one sequence's context and many blocks of it at once, each block seeing the context
 * before its anchor and itself. Everything that serving fixes is an input here, so that one session answers every
 * "what if": which features the context is made of, positions, masks, the ids in the block.
 *
 * Source of the maths: z-lab/dflash `dflash/model.py`; Chen, Liang and Liu 2026 (arXiv 2602.06036), section 4.
 */
import type { DflashConfig } from '../../drafter/dflash/dflash-config.ts';
import { type EmbeddingSpec, embedding } from '../../graph/embedding.ts';
import { type BuiltGraph, GraphBuilder, type Value } from '../../graph/graph-builder.ts';
import { type LinearFormat, type LinearSpec, linear } from '../../graph/linear.ts';
import { addAndNorm, rmsNorm } from '../../graph/norm.ts';
import { swiglu } from '../../graph/swiglu.ts';

export interface ProbeGraphOptions {
  readonly format: LinearFormat;
  readonly embedding: EmbeddingSpec;
  readonly head: LinearSpec;
}

/** Inputs and outputs by name; T context rows, A blocks of B slots, R = A · B block rows. */
export const PROBE_IO = {
  /** [T, taps · targetHidden] */
  features: 'features',
  /** [R] of i64 */
  blockIds: 'block_ids',
  /** [T, 1, headDim / 2] */
  contextCos: 'context_cos',
  contextSin: 'context_sin',
  /** [R, 1, headDim / 2] */
  blockCos: 'block_cos',
  blockSin: 'block_sin',
  /** [R, 1, T], added to a layer's scores of context rows. */
  contextBias: (layer: number) => `context_bias.${layer}`,
  /** [R, 1, B], added to a layer's scores of the own block. */
  blockBias: (layer: number) => `block_bias.${layer}`,
  /** [4] of i64: A, B, kvHeads, headDim. */
  keyShape: 'key_shape',
  /** [4] of i64: kvHeads, A, B · heads / kvHeads, headDim. */
  queryShape: 'query_shape',
  /** [2] of i64: T, B. */
  keyCounts: 'key_counts',
  /** [R, 1] of i64: the head row with the largest logit. */
  ids: 'ids',
  /** [R, 1]: its probability. */
  probabilities: 'probabilities',
} as const;

export function buildProbeGraph(config: DflashConfig, options: ProbeGraphOptions): BuiltGraph {
  const graph = new GraphBuilder();
  const { hidden, heads, kvHeads, headDim } = config;
  const half = headDim / 2;
  const group = heads / kvHeads;
  const features = graph.input(PROBE_IO.features, 'f32', ['context', config.taps.length * config.targetHidden]);
  const blockIds = graph.input(PROBE_IO.blockIds, 'i64', ['rows']);
  const rotary = {
    context: {
      cos: graph.input(PROBE_IO.contextCos, 'f32', ['context', 1, half]),
      sin: graph.input(PROBE_IO.contextSin, 'f32', ['context', 1, half]),
    },
    block: {
      cos: graph.input(PROBE_IO.blockCos, 'f32', ['rows', 1, half]),
      sin: graph.input(PROBE_IO.blockSin, 'f32', ['rows', 1, half]),
    },
  };
  const keyShape = graph.input(PROBE_IO.keyShape, 'i64', [4]);
  const queryShape = graph.input(PROBE_IO.queryShape, 'i64', [4]);
  const keyCounts = graph.input(PROBE_IO.keyCounts, 'i64', [2]);
  const norm = (weight: string, size = hidden) => ({ weight, size, epsilon: config.normEpsilon });
  const transpose = (x: Value, perm: readonly number[]) =>
    graph.node('Transpose', [x], { attributes: { perm: perm.map(BigInt) } });
  const reshape = (x: Value, shape: readonly number[]) => graph.node('Reshape', [x, graph.ints(shape)]);

  const fused = linear(graph, features, {
    weight: 'fc.weight',
    inFeatures: config.taps.length * config.targetHidden,
    outFeatures: hidden,
    format: options.format,
  });
  const context = rmsNorm(graph, fused, norm('hidden_norm.weight'));

  let residual = embedding(graph, blockIds, options.embedding);
  if (config.inputEmbeddingScale !== 1)
    residual = graph.node('Mul', [residual, graph.floats([config.inputEmbeddingScale], [])]);
  let normalised = rmsNorm(graph, residual, norm('layers.0.input_layernorm.weight'));
  for (let layer = 0; layer < config.layers; layer++) {
    const prefix = `layers.${layer}`;
    const project = (x: Value, part: string, outHeads: number) =>
      linear(graph, x, {
        weight: `${prefix}.self_attn.${part}.weight`,
        inFeatures: hidden,
        outFeatures: outHeads * headDim,
        format: options.format,
        ...(config.attentionBias ? { bias: `${prefix}.self_attn.${part}.bias` } : {}),
      });
    const rotated = (x: Value, count: number, part: string, tables: { cos: Value; sin: Value }) =>
      rotate(
        graph,
        rmsNorm(graph, reshape(x, [-1, count, headDim]), norm(`${prefix}.self_attn.${part}.weight`, headDim)),
        tables,
      );
    const contextBias = graph.input(PROBE_IO.contextBias(layer), 'f32', ['rows', 1, 'context']);
    const blockBias = graph.input(PROBE_IO.blockBias(layer), 'f32', ['rows', 1, 'slots']);

    // Rows of one key head's queries: block row after block row, each with the heads of its group.
    const query = transpose(
      reshape(rotated(project(normalised, 'q_proj', heads), heads, 'q_norm', rotary.block), [-1, kvHeads, group, headDim]),
      [1, 0, 2, 3],
    ); // [kvHeads, R, group, headDim]
    const queryRows = reshape(query, [kvHeads, -1, headDim]);
    const contextKey = transpose(rotated(project(context, 'k_proj', kvHeads), kvHeads, 'k_norm', rotary.context), [1, 2, 0]);
    const contextValue = transpose(reshape(project(context, 'v_proj', kvHeads), [-1, kvHeads, headDim]), [1, 0, 2]);
    const blockKey = transpose(
      graph.node('Reshape', [rotated(project(normalised, 'k_proj', kvHeads), kvHeads, 'k_norm', rotary.block), keyShape]),
      [2, 0, 3, 1],
    ); // [kvHeads, A, headDim, B]
    const blockValue = transpose(graph.node('Reshape', [project(normalised, 'v_proj', kvHeads), keyShape]), [2, 0, 1, 3]);

    const scores = (product: Value, bias: Value, keys: number) => {
      const perRow = graph.node('Reshape', [
        product,
        graph.node(
          'Concat',
          [graph.ints([kvHeads, -1, group]), graph.node('Slice', [keyCounts, graph.ints([keys]), graph.ints([keys + 1])])],
          { attributes: { axis: 0n } },
        ),
      ]);
      return graph.node('Add', [graph.node('Mul', [perRow, graph.floats([1 / Math.sqrt(headDim)], [])]), bias]);
    };
    const toContext = scores(graph.node('MatMul', [queryRows, contextKey]), contextBias, 0); // [kvHeads, R, group, T]
    const toBlock = scores(graph.node('MatMul', [graph.node('Reshape', [query, queryShape]), blockKey]), blockBias, 1); // [kvHeads, R, group, B]
    const weights = graph.node('Softmax', [graph.node('Concat', [toContext, toBlock], { attributes: { axis: -1n } })], {
      attributes: { axis: -1n },
    });
    const [onContext, onBlock] = graph.nodes('Split', [weights, keyCounts], 2, { attributes: { axis: -1n } }) as [Value, Value];
    const rowsOf = (x: Value, keys: number) =>
      graph.node('Reshape', [
        x,
        graph.node(
          'Concat',
          [graph.ints([kvHeads, -1]), graph.node('Slice', [keyCounts, graph.ints([keys]), graph.ints([keys + 1])])],
          { attributes: { axis: 0n } },
        ),
      ]);
    const fromContext = reshape(graph.node('MatMul', [rowsOf(onContext, 0), contextValue]), [kvHeads, -1, group, headDim]);
    const blockWeights = graph.node('Reshape', [
      onBlock,
      graph.node(
        'Concat',
        [
          graph.node('Slice', [queryShape, graph.ints([0]), graph.ints([3])]),
          graph.node('Slice', [keyCounts, graph.ints([1]), graph.ints([2])]),
        ],
        { attributes: { axis: 0n } },
      ),
    ]);
    const fromBlock = reshape(graph.node('MatMul', [blockWeights, blockValue]), [kvHeads, -1, group, headDim]);
    const attended = reshape(transpose(graph.node('Add', [fromContext, fromBlock]), [1, 0, 2, 3]), [-1, heads * headDim]);
    const attention = linear(graph, attended, {
      weight: `${prefix}.self_attn.o_proj.weight`,
      inFeatures: heads * headDim,
      outFeatures: hidden,
      format: options.format,
      ...(config.attentionBias ? { bias: `${prefix}.self_attn.o_proj.bias` } : {}),
    });
    const afterAttention = addAndNorm(graph, attention, residual, norm(`${prefix}.post_attention_layernorm.weight`));
    const feedForward = swiglu(graph, afterAttention.normalised, {
      prefix: `${prefix}.mlp`,
      hidden,
      intermediate: config.intermediate,
      format: options.format,
      bias: false,
    });
    const next = layer + 1 < config.layers ? `layers.${layer + 1}.input_layernorm.weight` : 'norm.weight';
    const afterLayer = addAndNorm(graph, feedForward, afterAttention.sum, norm(next));
    residual = afterLayer.sum;
    normalised = afterLayer.normalised;
  }

  let logits = linear(graph, normalised, options.head);
  if (config.outputMultiplier !== 1) logits = graph.node('Mul', [logits, graph.floats([config.outputMultiplier], [])]);
  if (config.logitSoftcap !== null) {
    const cap = graph.floats([config.logitSoftcap], []);
    logits = graph.node('Mul', [graph.node('Tanh', [graph.node('Div', [logits, cap])]), cap]);
  }
  declareChoice(graph, logits);
  return graph.build();
}

/** Declares the outputs that say what a row of logits chooses, and how likely it holds the choice to be. */
function declareChoice(graph: GraphBuilder, logits: Value): void {
  graph.nodes('TopK', [logits, graph.ints([1])], ['top', PROBE_IO.ids], {
    attributes: { axis: -1n, largest: 1n, sorted: 1n },
  });
  const probabilities = graph.node('Softmax', [logits], { attributes: { axis: -1n } });
  graph.nodes('ReduceMax', [probabilities, graph.ints([-1])], [PROBE_IO.probabilities], { attributes: { keepdims: 1n } });
  graph.output(PROBE_IO.ids, 'i64', ['rows', 1]);
  graph.output(PROBE_IO.probabilities, 'f32', ['rows', 1]);
}

/** Rotates the two halves of each head against each other (Su et al. 2021, eq. 34, in the order of GPT-NeoX). */
function rotate(graph: GraphBuilder, x: Value, tables: { readonly cos: Value; readonly sin: Value }): Value {
  const [first, second] = graph.nodes('Split', [x], 2, { attributes: { axis: -1n, num_outputs: 2n } }) as [Value, Value];
  const mul = (a: Value, b: Value) => graph.node('Mul', [a, b]);
  return graph.node(
    'Concat',
    [
      graph.node('Sub', [mul(first, tables.cos), mul(second, tables.sin)]),
      graph.node('Add', [mul(second, tables.cos), mul(first, tables.sin)]),
    ],
    { attributes: { axis: -1n } },
  );
}
