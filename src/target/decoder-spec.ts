import type { RopeSpec } from '../graph/rope.ts';

/** What a dense decoder looks like, whatever family it is of. Weight names follow Hugging Face. */
export interface DecoderSpec {
  /** `model_type` of the config. */
  readonly family: string;
  readonly vocab: number;
  readonly hidden: number;
  readonly intermediate: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly normEpsilon: number;
  readonly rope: RopeSpec;
  /** Positions that the model was made for. */
  readonly maxPositions: number;
  /** Queries and keys are normalised head by head before the rotation. */
  readonly headNorms: boolean;
  readonly qkvBias: boolean;
  readonly outputBias: boolean;
  readonly mlpBias: boolean;
  /** The output head is the embedding table. */
  readonly tiedHead: boolean;
}

export const EMBEDDING_WEIGHT = 'model.embed_tokens.weight';
export const FINAL_NORM_WEIGHT = 'model.norm.weight';

export function headWeight(spec: DecoderSpec): string {
  return spec.tiedHead ? EMBEDDING_WEIGHT : 'lm_head.weight';
}

export function layerPrefix(layer: number): string {
  return `model.layers.${layer}`;
}
