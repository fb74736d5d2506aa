import { bytesOf } from '../../checkpoint/file-io.ts';
import { f32ToBf16, f32ToF16 } from '../../checkpoint/half-float.ts';
import type { FloatDtype } from '../../checkpoint/tensor-dtype.ts';
import type { Precision } from './manifest-schema.ts';

export const DTYPES: Readonly<Record<Precision, FloatDtype>> = { f32: 'F32', bf16: 'BF16', f16: 'F16' };

/** A copy of the values, as bytes of a safetensors file. */
export function encodeRows(values: Float32Array, precision: Precision): Uint8Array {
  if (precision === 'f32') return bytesOf(values.slice());
  const halves = new Uint16Array(values.length);
  if (precision === 'bf16') f32ToBf16(values, halves);
  else f32ToF16(values, halves);
  return bytesOf(halves);
}
