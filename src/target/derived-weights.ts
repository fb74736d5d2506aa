/** Small weights that the graph wants in another form than the checkpoint's. They are computed once, at load. */
import type { ComputeType } from '../graph/precision.ts';
import { floatTensor } from '../model/float-tensor.ts';
import type { OnnxRuntime } from '../onnx/runtime.ts';
import type { WeightTensors } from '../onnx/weight-tensors.ts';
import { type DecoderSpec, finalNormWeight, layerPrefix, layersWith } from './decoder-spec.ts';

/** Name of the factors of a norm: the stored weight, or its sum with the offset of the family. */
export function normFactors(spec: DecoderSpec, weight: string): string {
  return spec.normOffset === 0 ? weight : `${weight}.factors`;
}

/** Name of −exp(A), what a softplus is multiplied with to give the logarithm of a decay. */
export function decayScale(layer: string): string {
  return `${layer}.linear_attn.decay_scale`;
}

/** Adds what {@link normFactors} and {@link decayScale} name; the former in what the graph computes in. */
export function addDerivedWeights(runtime: OnnxRuntime, spec: DecoderSpec, weights: WeightTensors, compute: ComputeType): void {
  const derive = (name: string, source: string, type: ComputeType, value: (stored: number) => number) => {
    const stored = weights.get(source);
    weights.add(name, floatTensor(runtime, type, stored.shape, Float32Array.from(stored.data as Float32Array, value)));
  };
  if (spec.normOffset !== 0) {
    for (const norm of offsetNorms(spec)) derive(normFactors(spec, norm), norm, compute, (stored) => stored + spec.normOffset);
  }
  for (const layer of layersWith(spec, 'gated-delta')) {
    const prefix = layerPrefix(spec, layer);
    derive(decayScale(prefix), `${prefix}.linear_attn.A_log`, 'f32', (stored) => -Math.exp(stored));
  }
}

function offsetNorms(spec: DecoderSpec): string[] {
  const perLayer = spec.layers.flatMap(({ mixer }, layer) => {
    const prefix = layerPrefix(spec, layer);
    const heads = mixer === 'attention' && spec.attention.headNorms ? ['self_attn.q_norm', 'self_attn.k_norm'] : [];
    return ['input_layernorm', 'post_attention_layernorm', ...heads].map((name) => `${prefix}.${name}.weight`);
  });
  return [finalNormWeight(spec), ...perLayer];
}
