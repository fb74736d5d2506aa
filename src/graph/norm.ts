/** Root-mean-square normalisation: x · rsqrt(mean(x²) + eps) · w (Zhang and Sennrich 2019, eq. 4), summed in f32. */
import { type GraphBuilder, MICROSOFT, type Value } from './graph-builder.ts';

export interface NormSpec {
  /** Name of the weight [size]. */
  readonly weight: string;
  readonly size: number;
  readonly epsilon: number;
}

/** @param x [..., size] */
export function rmsNorm(graph: GraphBuilder, x: Value, spec: NormSpec): Value {
  return graph.node('SimplifiedLayerNormalization', [x, graph.weight(spec.weight, graph.compute, [spec.size])], {
    attributes: { axis: -1n, epsilon: spec.epsilon, stash_type: 1n },
  });
}

/**
 * Adds a branch to the residual stream and normalises the sum in one pass.
 * @param branch [rows, size]
 * @param residual [rows, size]
 * @param sumName names the sum where it becomes an output of the graph
 */
export function addAndNorm(
  graph: GraphBuilder,
  branch: Value,
  residual: Value,
  spec: NormSpec,
  sumName?: string,
): { readonly normalised: Value; readonly sum: Value } {
  const id = sumName ?? `${spec.weight}.sum`;
  const normalised = `${spec.weight}.out`;
  graph.nodes(
    'SkipSimplifiedLayerNormalization',
    [branch, residual, graph.weight(spec.weight, graph.compute, [spec.size])],
    [normalised, '', '', id],
    { domain: MICROSOFT, attributes: { epsilon: spec.epsilon } },
  );
  return { normalised, sum: id };
}

/**
 * Normalises each head by itself, with one weight for all of them.
 * @param x [rows, heads · headDim]
 */
export function headNorm(graph: GraphBuilder, x: Value, heads: number, spec: NormSpec): Value {
  const split = graph.node('Reshape', [x, graph.ints([-1, heads, spec.size])]);
  return graph.node('Reshape', [rmsNorm(graph, split, spec), graph.ints([-1, heads * spec.size])]);
}
