/** The weights of a decoder: which tensors of the checkpoint, and how each is to be stored. */
import type { PlannedWeight } from '../checkpoint/weight-plan.ts';
import { mixedWidth } from '../graph/gated-delta.ts';
import { type DecoderSpec, embeddingWeight, finalNormWeight, headWeight, type LayerSpec, layerPrefix } from './decoder-spec.ts';

/** Every tensor that the graph needs, under its name in the checkpoint. */
export function planDecoderWeights(spec: DecoderSpec): PlannedWeight[] {
  const { vocab, hidden } = spec;
  const norm = normKind(spec);
  return [
    planned('head', headWeight(spec), vocab, hidden),
    ...(spec.tiedHead ? [] : [planned('embedding', embeddingWeight(spec), vocab, hidden)]),
    planned(norm, finalNormWeight(spec), hidden),
    ...spec.layers.flatMap((layer, index) => {
      const prefix = layerPrefix(spec, index);
      return [
        planned(norm, `${prefix}.input_layernorm.weight`, hidden),
        planned(norm, `${prefix}.post_attention_layernorm.weight`, hidden),
        ...(layer.mixer === 'attention' ? planAttention(spec, prefix) : planGatedDelta(spec, prefix)),
        ...planMlp(layer.mlp, hidden, `${prefix}.mlp`),
      ];
    }),
  ];
}

function planned(kind: PlannedWeight['kind'], name: string, ...shape: number[]): PlannedWeight {
  return { name, source: name, kind, shape };
}

/** What an offset is added to is rounded once, with it. */
function normKind({ normOffset }: DecoderSpec): PlannedWeight['kind'] {
  return normOffset === 0 ? 'vector' : 'exact';
}

function planAttention(spec: DecoderSpec, layer: string): PlannedWeight[] {
  const { hidden, attention } = spec;
  const { headDim, headNorms, qkvBias, outputBias } = attention;
  const width = attention.heads * headDim;
  const queryWidth = attention.gated ? 2 * width : width;
  const keyWidth = attention.kvHeads * headDim;
  const name = (part: string) => `${layer}.self_attn.${part}`;
  return [
    planned('linear', name('q_proj.weight'), queryWidth, hidden),
    planned('linear', name('k_proj.weight'), keyWidth, hidden),
    planned('linear', name('v_proj.weight'), keyWidth, hidden),
    planned('linear', name('o_proj.weight'), hidden, width),
    ...(headNorms
      ? [planned(normKind(spec), name('q_norm.weight'), headDim), planned(normKind(spec), name('k_norm.weight'), headDim)]
      : []),
    ...(qkvBias
      ? [
          planned('vector', name('q_proj.bias'), queryWidth),
          planned('vector', name('k_proj.bias'), keyWidth),
          planned('vector', name('v_proj.bias'), keyWidth),
        ]
      : []),
    ...(outputBias ? [planned('vector', name('o_proj.bias'), hidden)] : []),
  ];
}

/** All but the large matrices stay in f32 whatever the format: they are small, and errors in a decay multiply from row to row. */
function planGatedDelta({ hidden, gatedDelta }: DecoderSpec, layer: string): PlannedWeight[] {
  if (gatedDelta === null) return [];
  const { valueHeads, valueDim, convWidth } = gatedDelta;
  const mixed = mixedWidth(gatedDelta);
  const width = valueHeads * valueDim;
  const name = (part: string) => `${layer}.linear_attn.${part}`;
  return [
    planned('linear', name('in_proj_qkv.weight'), mixed, hidden),
    planned('linear', name('in_proj_z.weight'), width, hidden),
    planned('exact', name('in_proj_a.weight'), valueHeads, hidden),
    planned('exact', name('in_proj_b.weight'), valueHeads, hidden),
    planned('exact', name('conv1d.weight'), mixed, 1, convWidth),
    planned('exact', name('A_log'), valueHeads),
    planned('exact', name('dt_bias'), valueHeads),
    planned('exact', name('norm.weight'), valueDim),
    planned('linear', name('out_proj.weight'), hidden, width),
  ];
}

function planMlp(mlp: LayerSpec['mlp'], hidden: number, prefix: string): PlannedWeight[] {
  if (mlp.kind === 'dense') return planSwiglu(prefix, hidden, mlp.intermediate, mlp.bias);
  return [
    // In f32 whatever the format: rounding must not choose another expert.
    planned('exact', `${prefix}.gate.weight`, mlp.experts, hidden),
    ...Array.from({ length: mlp.experts }, (_, expert) =>
      planSwiglu(`${prefix}.experts.${expert}`, hidden, mlp.intermediate, false),
    ).flat(),
  ];
}

function planSwiglu(prefix: string, hidden: number, intermediate: number, bias: boolean): PlannedWeight[] {
  return [
    planned('linear', `${prefix}.gate_proj.weight`, intermediate, hidden),
    planned('linear', `${prefix}.up_proj.weight`, intermediate, hidden),
    planned('linear', `${prefix}.down_proj.weight`, hidden, intermediate),
    ...(bias
      ? [
          planned('vector', `${prefix}.gate_proj.bias`, intermediate),
          planned('vector', `${prefix}.up_proj.bias`, intermediate),
          planned('vector', `${prefix}.down_proj.bias`, hidden),
        ]
      : []),
  ];
}
