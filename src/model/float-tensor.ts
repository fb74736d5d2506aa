import { f32ToBf16, f32ToF16 } from '../checkpoint/half-float.ts';
import type { ComputeType } from '../graph/precision.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import { OwnedTensor } from '../onnx/tensor.ts';

/** A tensor of computed values, rounded to a type. It takes the array over where it need not be. */
export function floatTensor(
  runtime: OnnxRuntime,
  type: ComputeType,
  shape: readonly number[],
  values: Float32Array<ArrayBuffer>,
): OwnedTensor {
  if (type === 'f32') return OwnedTensor.over(runtime, type, shape, values);
  const halves = new Uint16Array(values.length);
  (type === 'f16' ? f32ToF16 : f32ToBf16)(values, halves);
  return OwnedTensor.over(runtime, type, shape, halves);
}
