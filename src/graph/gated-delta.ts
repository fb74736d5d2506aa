/**
 * Gated DeltaNet (Yang, Kautz and Hatamizadeh 2024, arXiv 2412.06464): a head keeps a matrix S [keyDim, valueDim] in place of
 * keys and values, and each row changes it. With the row's query q, key k, value v, log decay g and update rate β:
 *
 *     S ← exp(g) S;   δ = β (v − Sᵀ k);   S ← S + k δᵀ;   output = Sᵀ q / √keyDim
 *
 * Queries, keys and values first pass a causal depthwise convolution over the last rows, and a SiLU; queries and keys
 * are then brought to length 1. Source of the details: Hugging Face transformers, `modeling_qwen3_5.py`.
 */
import { type GraphBuilder, MICROSOFT, type Value } from './graph-builder.ts';

export interface GatedDeltaShape {
  /** Heads of queries and of keys; consecutive value heads share one. */
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Rows that the convolution sees, the current one included. */
  readonly convWidth: number;
}

/** Queries, keys and values side by side. */
export function mixedWidth({ keyHeads, keyDim, valueHeads, valueDim }: GatedDeltaShape): number {
  return 2 * keyHeads * keyDim + valueHeads * valueDim;
}

/** Shape of the rows that the convolution still needs, oldest first. */
export function windowShape(shape: GatedDeltaShape): readonly number[] {
  return [1, shape.convWidth - 1, mixedWidth(shape)];
}

/** Shape of S of all heads. */
export function stateShape({ valueHeads, keyDim, valueDim }: GatedDeltaShape): readonly number[] {
  return [1, valueHeads, keyDim, valueDim];
}

/** Names of a layer's state in a slot; each run reads the past and writes the present. */
export function stateNames(layer: number, slot: number) {
  const prefix = `slot.${slot}.layer.${layer}`;
  return {
    pastWindow: `${prefix}.past_window`,
    pastState: `${prefix}.past_state`,
    presentWindow: `${prefix}.present_window`,
    presentState: `${prefix}.present_state`,
  };
}

/** What the recurrence takes of each row, in f32. Given the state before, these decide the state after, bit for bit. */
export interface GatedDeltaRows {
  /** [rows, mixedWidth]: queries, keys and values before the convolution. */
  readonly mixed: Value;
  /** [rows, valueHeads]: logarithm of the share of S that is kept. */
  readonly decay: Value;
  /** [rows, valueHeads] */
  readonly rate: Value;
}

/**
 * Decay and update rate of each row: scale · softplus(a + bias), and sigmoid(b).
 * One fused node, not only for speed: the element-wise softplus rounds differently at the end of a tensor, which would
 * make a row depend on how many there are.
 * @param a [rows, valueHeads]
 * @param b [rows, valueHeads]
 * @param weights.scale name of a weight [valueHeads]; negative
 * @param weights.bias name of a weight [valueHeads]
 */
export function deltaGates(
  graph: GraphBuilder,
  a: Value,
  b: Value,
  weights: { readonly scale: string; readonly bias: string; readonly valueHeads: number },
): Pick<GatedDeltaRows, 'decay' | 'rate'> {
  const vector = (name: string) => graph.weight(name, 'f32', [weights.valueHeads]);
  const [decay, rate] = graph.nodes('LinearAttentionGate', [a, vector(weights.bias), vector(weights.scale), b], 2, {
    domain: MICROSOFT,
  });
  return { decay: decay as Value, rate: rate as Value };
}

export interface SlotGatedDeltaSpec {
  readonly slot: number;
  readonly layer: number;
  readonly shape: GatedDeltaShape;
  /** Name of the weight [mixedWidth, 1, convWidth]. */
  readonly convWeight: string;
}

/**
 * Takes rows of one sequence through the recurrence, and declares its state as inputs and outputs of the graph.
 * However the rows are cut into runs, the results are the same bit for bit.
 * @param rows of all sequences
 * @param own [1, slotRows] of i64: which of them belong to this one, in order
 * @returns [1, slotRows, valueHeads · valueDim]
 */
export function slotGatedDelta(graph: GraphBuilder, rows: GatedDeltaRows, own: Value, spec: SlotGatedDeltaSpec): Value {
  const { shape } = spec;
  const names = stateNames(spec.layer, spec.slot);
  const [mixed, decay, rate] = [rows.mixed, rows.decay, rows.rate].map((value) => graph.node('Gather', [value, own])) as [
    Value,
    Value,
    Value,
  ];
  const [convolved] = graph.nodes(
    'CausalConvWithState',
    [
      mixed,
      graph.weight(spec.convWeight, 'f32', [mixedWidth(shape), 1, shape.convWidth]),
      '',
      graph.input(names.pastWindow, 'f32', windowShape(shape)),
    ],
    [`slot.${spec.slot}.layer.${spec.layer}.convolved`, names.presentWindow],
    { domain: MICROSOFT, attributes: { ndim: 1n, activation: 'silu', channels_last: 1n } },
  );
  const keyWidth = shape.keyHeads * shape.keyDim;
  const valueWidth = shape.valueHeads * shape.valueDim;
  const [queriesAndKeys, values] = graph.nodes('Split', [convolved as Value, graph.ints([2 * keyWidth, valueWidth])], 2, {
    attributes: { axis: 2n },
  });
  const unit = unitHeads(graph, queriesAndKeys as Value, 2 * shape.keyHeads, shape.keyDim);
  const [queries, keys] = graph.nodes('Split', [unit, graph.ints([keyWidth, keyWidth])], 2, { attributes: { axis: 2n } });
  const [output] = graph.nodes(
    'LinearAttention',
    [queries as Value, keys as Value, values as Value, graph.input(names.pastState, 'f32', stateShape(shape)), decay, rate],
    [`slot.${spec.slot}.layer.${spec.layer}.delta`, names.presentState],
    {
      domain: MICROSOFT,
      attributes: {
        update_rule: 'gated_delta',
        q_num_heads: BigInt(shape.keyHeads),
        kv_num_heads: BigInt(shape.valueHeads),
        scale: 1 / Math.sqrt(shape.keyDim),
      },
    },
  );
  graph.output(names.presentWindow, 'f32', windowShape(shape));
  graph.output(names.presentState, 'f32', stateShape(shape));
  return output as Value;
}

/** Keeps heads of zeros from being divided by zero. */
const LENGTH_EPSILON = 1e-6;

/**
 * x / √(Σ x² + ε) head by head, as a root-mean-square norm with weights 1/√dim and epsilon ε/dim.
 * @param x [1, rows, heads · dim]
 */
function unitHeads(graph: GraphBuilder, x: Value, heads: number, dim: number): Value {
  const weight = graph.floats(new Array<number>(dim).fill(1 / Math.sqrt(dim)));
  const split = graph.node('Reshape', [x, graph.ints([1, -1, heads, dim])]);
  const unit = graph.node('SimplifiedLayerNormalization', [split, weight], {
    attributes: { axis: -1n, epsilon: LENGTH_EPSILON / dim, stash_type: 1n },
  });
  return graph.node('Reshape', [unit, graph.ints([1, -1, heads * dim])]);
}
