import type { GatedDeltaShape } from '../graph/gated-delta.ts';
import type { RopeSpec } from '../graph/rope.ts';
import type { AttentionShape } from '../graph/slot-attention.ts';

/** What a decoder looks like, whatever family it is of. Weight names follow Hugging Face. */
export interface DecoderSpec {
  /** `model_type` of the config. */
  readonly family: string;
  readonly vocab: number;
  readonly hidden: number;
  readonly normEpsilon: number;
  /** Added to the weights of the norms, except of those inside gated-delta layers. */
  readonly normOffset: number;
  readonly rope: RopeSpec;
  /** Positions that the model was made for. */
  readonly maxPositions: number;
  /** The output head is the embedding table. */
  readonly tiedHead: boolean;
  /** What the names of all weights but the head's begin with. */
  readonly weightPrefix: string;
  readonly layers: readonly LayerSpec[];
  /** Of all attention layers. */
  readonly attention: AttentionSpec;
  /** Of all gated-delta layers; null when there are none. */
  readonly gatedDelta: GatedDeltaShape | null;
}

export interface LayerSpec {
  /** How rows see those before them: through cached keys and values, or through a state of fixed size. */
  readonly mixer: 'attention' | 'gated-delta';
  readonly mlp: DenseMlpSpec | MixtureMlpSpec;
}

export interface AttentionSpec extends AttentionShape {
  /** Queries and keys are normalised head by head before the rotation. */
  readonly headNorms: boolean;
  /** Each query head comes with a gate for its output. */
  readonly gated: boolean;
  readonly qkvBias: boolean;
  readonly outputBias: boolean;
}

export interface DenseMlpSpec {
  readonly kind: 'dense';
  readonly intermediate: number;
  readonly bias: boolean;
}

export interface MixtureMlpSpec {
  readonly kind: 'mixture';
  /** Of each expert. */
  readonly intermediate: number;
  readonly experts: number;
  readonly expertsPerToken: number;
  /** The chosen experts' shares are scaled to sum to 1. */
  readonly normaliseShares: boolean;
}

export function embeddingWeight(spec: DecoderSpec): string {
  return `${spec.weightPrefix}.embed_tokens.weight`;
}

export function finalNormWeight(spec: DecoderSpec): string {
  return `${spec.weightPrefix}.norm.weight`;
}

export function headWeight(spec: DecoderSpec): string {
  return spec.tiedHead ? embeddingWeight(spec) : 'lm_head.weight';
}

export function layerPrefix(spec: DecoderSpec, layer: number): string {
  return `${spec.weightPrefix}.layers.${layer}`;
}

/** The layers with a mixer of a kind, in order. */
export function layersWith(spec: DecoderSpec, mixer: LayerSpec['mixer']): number[] {
  return spec.layers.flatMap((layer, index) => (layer.mixer === mixer ? [index] : []));
}

/** Whether only the leading dimensions of a head are rotated. */
export function rotatesPartly(spec: DecoderSpec): boolean {
  return spec.rope.dims !== spec.attention.headDim;
}
