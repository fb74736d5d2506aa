import type { GraphBuilder, Value } from './graph-builder.ts';
import { type LinearFormat, linear } from './linear.ts';
import { swiglu } from './swiglu.ts';

export interface MixtureSpec {
  /** Weight names are `<prefix>.gate.weight` for the router and `<prefix>.experts.<i>.…` as {@link swiglu} has them. */
  readonly prefix: string;
  readonly hidden: number;
  /** Of each expert. */
  readonly intermediate: number;
  readonly experts: number;
  readonly expertsPerToken: number;
  /** The chosen experts' shares are scaled to sum to 1. */
  readonly normaliseShares: boolean;
  /** Of the experts; the router is always computed in f32. */
  readonly format: LinearFormat;
}

/**
 * Each row is computed by the experts that a router chooses for it, and their results are added by share
 * (Shazeer et al. 2017, eq. 1).
 *
 * An expert takes in the rows that chose it in one matrix product, of no rows where there are none: its eleven nodes are
 * dispatched in any case. A row's result does not depend on the others bit for bit: matrix products keep rows apart, and its shares are added in the order of
 * their size, whoever else chose those experts.
 * @param x [rows, hidden]
 * @returns [rows, hidden]
 */
export function mixtureOfExperts(graph: GraphBuilder, x: Value, spec: MixtureSpec): Value {
  const { prefix, hidden, experts, expertsPerToken } = spec;
  const scores = linear(graph, graph.cast(x, graph.compute, 'f32'), {
    weight: `${prefix}.gate.weight`,
    inFeatures: hidden,
    outFeatures: experts,
    format: 'f32',
  });
  const shares = graph.node('Softmax', [scores], { attributes: { axis: -1n } });
  const [largest, chosen] = graph.nodes('TopK', [shares, graph.ints([expertsPerToken])], 2, {
    attributes: { axis: -1n, largest: 1n, sorted: 1n },
  }) as [Value, Value]; // [rows, expertsPerToken]
  const scaled = spec.normaliseShares
    ? graph.node('Div', [largest, graph.node('ReduceSum', [largest, graph.ints([-1])], { attributes: { keepdims: 1n } })])
    : largest;
  const weights = graph.cast(scaled, 'f32', graph.compute);

  // A use is a pair of row and chosen expert, row after row.
  const uses = graph.node('Reshape', [chosen, graph.ints([-1])]);
  const perExpert = Array.from({ length: experts }, (_, expert) => {
    const hits = graph.node('NonZero', [graph.node('Equal', [uses, graph.ints([expert], [])])]);
    const places = graph.node('Squeeze', [hits, graph.ints([0])]); // [hits] of i64, ascending
    const rows = graph.node('Div', [places, graph.ints([expertsPerToken], [])]);
    const result = swiglu(graph, graph.node('Gather', [x, rows]), {
      prefix: `${prefix}.experts.${expert}`,
      hidden,
      intermediate: spec.intermediate,
      format: spec.format,
      bias: false,
    });
    return { places, result };
  });
  const joined = (values: readonly Value[]) => graph.node('Concat', values, { attributes: { axis: 0n } });
  const byUse = graph.node('Gather', [
    joined(perExpert.map(({ result }) => result)),
    inverse(graph, joined(perExpert.map(({ places }) => places))),
  ]);
  const split = graph.node('Reshape', [byUse, graph.ints([-1, expertsPerToken, hidden])]);
  const weighted = graph.node('Mul', [split, graph.node('Unsqueeze', [weights, graph.ints([2])])]);
  // Not as a reduction: that adds in an order which depends on the number of rows.
  const parts = graph.nodes('Split', [weighted, graph.ints(new Array<number>(expertsPerToken).fill(1))], expertsPerToken, {
    attributes: { axis: 1n },
  });
  return graph.node('Squeeze', [graph.node('Sum', parts), graph.ints([1])]);
}

/** The permutation that undoes another. */
function inverse(graph: GraphBuilder, permutation: Value): Value {
  const count = graph.node('Size', [permutation]);
  const places = graph.node('Range', [graph.ints([0], []), count, graph.ints([1], [])]);
  return graph.node('ScatterElements', [permutation, permutation, places], { attributes: { axis: 0n } });
}
