/** Matrix products with a weight [out, in], whatever its storage. */
import { type GraphBuilder, MICROSOFT, type Value } from './graph-builder.ts';
import type { ComputeType } from './precision.ts';

/** Storage of a weight: plain, or blocks of 32 along the input axis with one scale each. */
export type LinearFormat = ComputeType | 'int8' | 'int4';

/** Weights of one scale. Larger blocks make a row's result depend on how many rows are computed with it. */
export const QUANT_BLOCK = 32;

const BITS = { int8: 8, int4: 4 } as const;

export interface LinearSpec {
  /** Name of the weight; a quantised one is stored as `<name>.q` and `<name>.scale`. */
  readonly weight: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly format: LinearFormat;
  /** Name of a bias [out]. */
  readonly bias?: string;
  /** Name of the output; needed only where it becomes an output of the graph. */
  readonly name?: string;
}

/**
 * y = x Wᵀ + b.
 * Rows do not depend on each other bit for bit, which verification relies on: a row computed alone, in a block or
 * beside other sequences has the same value.
 * @param x [rows, in]; of the weight's type when that is plain, else of the graph's
 * @returns [rows, out], of the same type
 */
export function linear(graph: GraphBuilder, x: Value, spec: LinearSpec): Value {
  const type = linearType(graph, spec.format);
  const bias = spec.bias === undefined ? undefined : graph.weight(spec.bias, type, [spec.outFeatures]);
  const named = spec.name === undefined ? {} : { name: spec.name };
  if (spec.format !== 'int8' && spec.format !== 'int4') {
    // Gemm with transB keeps Hugging Face's [out, in] layout and packs it once; MatMul would keep a transposed copy.
    const weight = graph.weight(spec.weight, type, [spec.outFeatures, spec.inFeatures]);
    return graph.node('Gemm', bias === undefined ? [x, weight] : [x, weight, bias], { attributes: { transB: 1n }, ...named });
  }
  const bits = BITS[spec.format];
  const blocks = Math.ceil(spec.inFeatures / QUANT_BLOCK);
  const q = graph.weight(`${spec.weight}.q`, 'u8', [spec.outFeatures, blocks, (QUANT_BLOCK * bits) / 8]);
  const scale = graph.weight(`${spec.weight}.scale`, type, [spec.outFeatures, blocks]);
  return graph.node('MatMulNBits', bias === undefined ? [x, q, scale] : [x, q, scale, '', '', bias], {
    domain: MICROSOFT,
    attributes: {
      K: BigInt(spec.inFeatures),
      N: BigInt(spec.outFeatures),
      bits: BigInt(bits),
      block_size: BigInt(QUANT_BLOCK),
      // Level 4 quantises the activations too: without it 8-bit weights are about 40 times slower on a CPU.
      accuracy_level: 4n,
    },
    ...named,
  });
}

/** What a product with a weight of this storage takes and gives. */
export function linearType(graph: GraphBuilder, format: LinearFormat): ComputeType {
  return format === 'int8' || format === 'int4' ? graph.compute : format;
}
