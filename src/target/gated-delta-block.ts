import { deltaGates, type GatedDeltaShape, mixedWidth, slotGatedDelta } from '../graph/gated-delta.ts';
import { type GraphBuilder, MICROSOFT, type Value } from '../graph/graph-builder.ts';
import { type LinearFormat, linear, linearType } from '../graph/linear.ts';
import { type BlockContext, joinSlots } from './block-context.ts';
import { type DecoderSpec, layerPrefix } from './decoder-spec.ts';
import { decayScale } from './derived-weights.ts';
import { IO } from './step-io.ts';

/** Name of the weight of a layer's convolution. */
export function convWeight(spec: DecoderSpec, layer: number): string {
  return `${layerPrefix(spec, layer)}.linear_attn.conv1d.weight`;
}

/**
 * A gated DeltaNet layer's mixer: projections, the recurrence of each slot, a gated norm of each head, output.
 * What the recurrence takes of the recorded rows becomes an output of the graph. From there to the norm all is in f32: what
 * is rounded in a state stays in it.
 * @param x [rows, hidden], normalised
 * @returns [rows, hidden]
 */
export function gatedDeltaBlock(graph: GraphBuilder, x: Value, layer: number, context: BlockContext): Value {
  const { spec } = context;
  const shape = spec.gatedDelta as GatedDeltaShape;
  const { valueHeads, valueDim } = shape;
  const width = valueHeads * valueDim;
  const prefix = `${layerPrefix(spec, layer)}.linear_attn`;
  const exact = graph.cast(x, graph.compute, 'f32');
  const project = (part: string, outFeatures: number, format: LinearFormat) => {
    const type = linearType(graph, format);
    const input = type === 'f32' ? exact : x;
    const projected = linear(graph, input, {
      weight: `${prefix}.${part}.weight`,
      inFeatures: spec.hidden,
      outFeatures,
      format,
    });
    return graph.cast(projected, type, 'f32');
  };

  const mixed = project('in_proj_qkv', mixedWidth(shape), context.format);
  const gate = project('in_proj_z', width, context.format);
  const gates = deltaGates(graph, project('in_proj_a', valueHeads, 'f32'), project('in_proj_b', valueHeads, 'f32'), {
    scale: decayScale(layerPrefix(spec, layer)),
    bias: `${prefix}.dt_bias`,
    valueHeads,
  });
  const rows = { mixed, ...gates };
  const record = IO.record(layer);
  for (const part of ['mixed', 'decay', 'rate'] as const) {
    const name = graph.node('Gather', [rows[part], context.recordedRows as Value], { name: record[part] });
    graph.output(name, 'f32', ['recorded', part === 'mixed' ? mixedWidth(shape) : valueHeads]);
  }

  const perSlot = context.slots.map((slot) =>
    slotGatedDelta(graph, rows, slot.ownRows as Value, { slot: slot.index, layer, shape, convWeight: convWeight(spec, layer) }),
  );
  const joined = joinSlots(graph, perSlot, width);
  // Slots without a sequence are the last, and compute a row for nothing.
  const used =
    perSlot.length === 1
      ? joined
      : graph.node('Slice', [joined, graph.ints([0]), graph.node('Shape', [context.ids]), graph.ints([0])]);
  const [normed] = graph.nodes('GatedRMSNorm', [used, graph.weight(`${prefix}.norm.weight`, 'f32', [valueDim]), gate], 1, {
    domain: MICROSOFT,
    attributes: { epsilon: spec.normEpsilon },
  });
  return linear(graph, graph.cast(normed as Value, 'f32', graph.compute), {
    weight: `${prefix}.out_proj.weight`,
    inFeatures: width,
    outFeatures: spec.hidden,
    format: context.format,
  });
}
