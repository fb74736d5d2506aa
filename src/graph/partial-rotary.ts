/** Rotary position embedding of the leading dimensions of each head; the others pass through. */
import { type GraphBuilder, MICROSOFT, type Value } from './graph-builder.ts';
import type { RotaryTables } from './slot-attention.ts';

export interface PartialRotarySpec {
  readonly heads: number;
  /** Rotated dimensions of a head; their two halves are rotated against each other. */
  readonly dims: number;
  readonly tables: RotaryTables;
}

/**
 * A node of its own, as the attention node rotates multiples of 16 dimensions only.
 * @param x [rows, heads · headDim]
 * @param positions [1, rows] of i64
 * @returns [rows, heads · headDim]
 */
export function partialRotary(graph: GraphBuilder, x: Value, positions: Value, spec: PartialRotarySpec): Value {
  const one = graph.node('Unsqueeze', [x, graph.ints([0])]);
  const rotated = graph.node('RotaryEmbedding', [one, positions, spec.tables.cos, spec.tables.sin], {
    domain: MICROSOFT,
    attributes: { num_heads: BigInt(spec.heads), rotary_embedding_dim: BigInt(spec.dims) },
  });
  return graph.node('Squeeze', [rotated, graph.ints([0])]);
}
