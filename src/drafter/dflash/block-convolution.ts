/**
 * The grouped dynamic convolution of DFlash 2: causal, within a block, around a part of each layer. The weight of a feature
 * is a fixed one plus one that its row makes for its group of features.
 *
 * Source: z-lab/dflash `dflash/model.py`, `GroupedDynamicCausalConv`.
 */
import type { GraphBuilder, Value } from '../../graph/graph-builder.ts';
import { type LinearFormat, linear } from '../../graph/linear.ts';
import type { OnnxRuntime } from '../../onnx/runtime.ts';
import { OwnedTensor } from '../../onnx/tensor.ts';
import type { WeightTensors } from '../../onnx/weight-tensors.ts';

export interface BlockConvolutionSpec {
  /** The weights are `<prefix>.kernel_projection.weight` and what {@link addBaseKernelParts} adds. */
  readonly prefix: string;
  readonly hidden: number;
  readonly width: number;
  readonly group: number;
  readonly format: LinearFormat;
  /** By distance from 1 on, [rows] of i64: where the row so far before each in its block stands among a row of zeros and all rows. */
  readonly before: readonly Value[];
}

/** Name of a row of `<prefix>.base_kernel`: one distance of one side. */
export function baseKernelPart(prefix: string, part: number): string {
  return `${prefix}.base_kernel.${part}`;
}

/**
 * Adds the rows of `<prefix>.base_kernel` [2, width, hidden], one by one: ONNX Runtime would take a weight apart when it loads
 * a graph, and looks for its values in a file then.
 */
export function addBaseKernelParts(
  runtime: OnnxRuntime,
  weights: WeightTensors,
  { prefix, hidden, width, group }: Pick<BlockConvolutionSpec, 'prefix' | 'hidden' | 'width' | 'group'>,
): void {
  const stored = weights.get(`${prefix}.base_kernel`);
  for (let part = 0; part < 2 * width; part++) {
    const row = stored.data.slice(part * hidden, (part + 1) * hidden);
    weights.add(baseKernelPart(prefix, part), OwnedTensor.over(runtime, stored.type, [1, hidden / group, group], row));
  }
}

/** Convolves rows as they are now, with the weights for before the part or behind it. */
export type Convolve = (rows: Value, side: 'before' | 'behind') => Value;

/**
 * @param x [rows, hidden], which makes the dynamic weights of both sides
 */
export function blockConvolution(graph: GraphBuilder, x: Value, spec: BlockConvolutionSpec): Convolve {
  const { prefix, hidden, width, group } = spec;
  const groups = hidden / group;
  const parts = 2 * width;
  const dynamic = graph.nodes(
    'Split',
    [
      linear(graph, x, {
        weight: `${prefix}.kernel_projection.weight`,
        inFeatures: hidden,
        outFeatures: parts * groups,
        format: spec.format,
      }),
      graph.ints(new Array<number>(parts).fill(groups)),
    ],
    parts,
    { attributes: { axis: 1n } },
  ); // [rows, groups] each
  const base = Array.from({ length: parts }, (_, part) =>
    graph.weight(baseKernelPart(prefix, part), graph.compute, [1, groups, group]),
  );
  const zero = graph.cast(graph.floats(new Array<number>(hidden).fill(0), [1, hidden]), 'f32', graph.compute);
  return (rows, side) => {
    const padded = graph.node('Concat', [zero, rows], { attributes: { axis: 0n } });
    const taps = Array.from({ length: width }, (_, distance) => {
      const part = (side === 'before' ? 0 : width) + distance;
      const values = distance === 0 ? rows : graph.node('Gather', [padded, spec.before[distance - 1] as Value]);
      const weight = graph.node('Add', [
        base[part] as Value,
        graph.node('Unsqueeze', [dynamic[part] as Value, graph.ints([2])]),
      ]);
      return graph.node('Mul', [weight, graph.node('Reshape', [values, graph.ints([-1, groups, group])])]);
    });
    const sum = taps.reduce((total, tap) => graph.node('Add', [total, tap]));
    return graph.node('Reshape', [sum, graph.ints([-1, hidden])]);
  };
}
