import type { GraphBuilder, Value } from './graph-builder.ts';
import { type LinearFormat, linear } from './linear.ts';

export interface SwigluSpec {
  /** Weight names are `<prefix>.gate_proj.weight`, `.up_proj.weight` and `.down_proj.weight`. */
  readonly prefix: string;
  readonly hidden: number;
  readonly intermediate: number;
  readonly format: LinearFormat;
  readonly bias: boolean;
}

/**
 * Gated feed-forward: down(silu(gate x) · up x) (Shazeer 2020, eq. 6).
 * @param x [rows, hidden]
 */
export function swiglu(graph: GraphBuilder, x: Value, spec: SwigluSpec): Value {
  const { prefix, hidden, intermediate, format } = spec;
  const project = (part: string, input: Value, inFeatures: number, outFeatures: number) =>
    linear(graph, input, {
      weight: `${prefix}.${part}.weight`,
      inFeatures,
      outFeatures,
      format,
      ...(spec.bias ? { bias: `${prefix}.${part}.bias` } : {}),
    });
  const gate = project('gate_proj', x, hidden, intermediate);
  const up = project('up_proj', x, hidden, intermediate);
  const gated = graph.node('Mul', [graph.node('Mul', [gate, graph.node('Sigmoid', [gate])]), up]);
  return project('down_proj', gated, intermediate, hidden);
}
