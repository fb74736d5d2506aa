import { blockBytes, blocksPerRow } from './block-quantization.ts';
import { elementCount } from './tensor-dtype.ts';
import type { PlannedWeight, WeightFormat } from './weight-plan.ts';

const F32_BYTES = 4;
const HALF_BYTES = 2;

/**
 * Bytes that the weights of a plan take in a format, scales included; those of a quantised one as on a CPU.
 * @param embeddingElementBytes of the float type of the checkpoint's embedding table
 */
export function planBytes(plan: readonly PlannedWeight[], format: WeightFormat, embeddingElementBytes: number): number {
  return plan.reduce((sum, weight) => sum + weightBytes(weight, format, embeddingElementBytes), 0);
}

function weightBytes({ kind, shape }: PlannedWeight, format: WeightFormat, embeddingElementBytes: number): number {
  const elements = elementCount(shape);
  if (kind === 'embedding') return elements * embeddingElementBytes;
  if (kind === 'exact' || format === 'f32') return elements * F32_BYTES;
  if (format === 'f16' || format === 'bf16') return elements * HALF_BYTES;
  if (kind === 'vector') return elements * F32_BYTES;
  const [rows = 0, columns = 0] = shape;
  const bits = format === 'int4' && kind === 'linear' ? 4 : 8;
  return rows * blocksPerRow(columns) * (blockBytes(bits) + F32_BYTES);
}
