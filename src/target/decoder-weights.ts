/** The weights of a decoder: which tensors of the checkpoint, and how each is to be stored. */
import type { PlannedWeight } from '../checkpoint/weight-plan.ts';
import { type DecoderSpec, EMBEDDING_WEIGHT, FINAL_NORM_WEIGHT, headWeight, layerPrefix } from './decoder-spec.ts';

/** Every tensor that the graph needs, under its name in the checkpoint. */
export function planDecoderWeights(spec: DecoderSpec): PlannedWeight[] {
  const weight = (kind: PlannedWeight['kind'], name: string, ...shape: number[]): PlannedWeight => ({
    name,
    source: name,
    kind,
    shape,
  });
  const { hidden, intermediate, headDim } = spec;
  const width = spec.heads * headDim;
  const kvWidth = spec.kvHeads * headDim;
  const plan = [
    weight('head', headWeight(spec), spec.vocab, hidden),
    ...(spec.tiedHead ? [] : [weight('embedding', EMBEDDING_WEIGHT, spec.vocab, hidden)]),
    weight('vector', FINAL_NORM_WEIGHT, hidden),
  ];
  for (let layer = 0; layer < spec.layers; layer++) {
    const prefix = layerPrefix(layer);
    const attention = (part: string) => `${prefix}.self_attn.${part}`;
    const mlp = (part: string) => `${prefix}.mlp.${part}`;
    const norms = spec.headNorms
      ? [weight('vector', attention('q_norm.weight'), headDim), weight('vector', attention('k_norm.weight'), headDim)]
      : [];
    const qkvBiases = spec.qkvBias
      ? [
          weight('vector', attention('q_proj.bias'), width),
          weight('vector', attention('k_proj.bias'), kvWidth),
          weight('vector', attention('v_proj.bias'), kvWidth),
        ]
      : [];
    const mlpBiases = spec.mlpBias
      ? [
          weight('vector', mlp('gate_proj.bias'), intermediate),
          weight('vector', mlp('up_proj.bias'), intermediate),
          weight('vector', mlp('down_proj.bias'), hidden),
        ]
      : [];
    plan.push(
      weight('vector', `${prefix}.input_layernorm.weight`, hidden),
      weight('vector', `${prefix}.post_attention_layernorm.weight`, hidden),
      weight('linear', attention('q_proj.weight'), width, hidden),
      weight('linear', attention('k_proj.weight'), kvWidth, hidden),
      weight('linear', attention('v_proj.weight'), kvWidth, hidden),
      weight('linear', attention('o_proj.weight'), hidden, width),
      weight('linear', mlp('gate_proj.weight'), intermediate, hidden),
      weight('linear', mlp('up_proj.weight'), intermediate, hidden),
      weight('linear', mlp('down_proj.weight'), hidden, intermediate),
      ...norms,
      ...qkvBiases,
      ...(spec.outputBias ? [weight('vector', attention('o_proj.bias'), hidden)] : []),
      ...mlpBiases,
    );
  }
  return plan;
}
