/** Token embeddings, also from a quantised table that is shared with the output head. */
import type { GraphBuilder, Value } from './graph-builder.ts';
import { QUANT_BLOCK } from './linear.ts';

/** Storage of the table [vocab, hidden]. */
export type EmbeddingFormat = 'f32' | 'f16' | 'bf16' | 'int8';

export interface EmbeddingSpec {
  readonly weight: string;
  readonly vocab: number;
  readonly hidden: number;
  readonly format: EmbeddingFormat;
}

/**
 * Rows of the table, in what the graph computes in. Only the rows looked up are converted.
 * @param ids [rows] of i64
 * @returns [rows, hidden]
 */
export function embedding(graph: GraphBuilder, ids: Value, spec: EmbeddingSpec): Value {
  if (spec.format !== 'int8') {
    const table = graph.weight(spec.weight, spec.format, [spec.vocab, spec.hidden]);
    const rows = graph.node('Gather', [table, ids]);
    return graph.cast(rows, spec.format, graph.compute);
  }
  const blocks = Math.ceil(spec.hidden / QUANT_BLOCK);
  const q = graph.weight(`${spec.weight}.q`, 'u8', [spec.vocab, blocks, QUANT_BLOCK]);
  const scale = graph.weight(`${spec.weight}.scale`, graph.compute, [spec.vocab, blocks]);
  const quants = graph.cast(graph.node('Gather', [q, ids]), 'u8', graph.compute); // [rows, blocks, 32]
  const scales = graph.node('Unsqueeze', [graph.node('Gather', [scale, ids]), graph.ints([2])]); // [rows, blocks, 1]
  const zeroPoint = graph.cast(graph.floats([128], []), 'f32', graph.compute);
  const values = graph.node('Mul', [graph.node('Sub', [quants, zeroPoint]), scales]);
  const flat = graph.node('Reshape', [values, graph.ints([-1, blocks * QUANT_BLOCK])]);
  if (blocks * QUANT_BLOCK === spec.hidden) return flat;
  return graph.node('Slice', [flat, graph.ints([0]), graph.ints([spec.hidden]), graph.ints([1])]);
}
