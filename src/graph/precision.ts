/** In which element types a model computes. Nothing else decides one. */
import type { LinearFormat } from './linear.ts';

/** Type of activations, caches, vectors, scales and rotary tables. */
export type ComputeType = 'f32' | 'f16' | 'bf16';

/**
 * What stays f32 in any case: what a norm sums, the router of a mixture, gated delta rules with their states, and taps and
 * logits that leave the graph. The 16-bit types are for CUDA, whose attention has kernels for them alone.
 */
export interface Precision {
  readonly compute: ComputeType;
  /** Of the matrices inside layers. */
  readonly linear: LinearFormat;
  readonly head: LinearFormat;
}

/**
 * @param format of the weights; a plain one is also what is computed in
 * @param device decides for quantised weights, which are plain types' in all but their matrices. bf16 rather than f16
 *   on CUDA, as a residual stream may be too large for the latter.
 */
export function precisionOf(format: LinearFormat, device: 'cpu' | 'cuda'): Precision {
  if (format !== 'int8' && format !== 'int4') return { compute: format, linear: format, head: format };
  return { compute: device === 'cuda' ? 'bf16' : 'f32', linear: format, head: 'int8' };
}
