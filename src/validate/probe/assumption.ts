/** What a drafter is run under: everything that serving takes from its config, and that training may have done otherwise. */
import type { TokenId } from '../../core/token.ts';
import type { DflashConfig, LayerAttention } from '../../drafter/dflash/dflash-config.ts';
import type { RopeSpec } from '../../graph/rope.ts';

/** What one column block of `fc` is fed with. */
export type TapSource =
  /** Residual stream after a layer; -1: the embedding. */
  | { readonly kind: 'layer'; readonly layer: number }
  /** The last layer's stream after the final norm. */
  | { readonly kind: 'final-norm' }
  | { readonly kind: 'zero' };

export interface Assumption {
  readonly taps: readonly TapSource[];
  readonly maskTokenId: TokenId;
  /** Slots of a block, the anchor's included. */
  readonly blockSize: number;
  /** Added to the positions of the block. */
  readonly blockShift: number;
  /** A block sees context rows below anchor + this: 0 is the rule of DFlash, 1 lets in the anchor's own row. */
  readonly contextEdge: number;
  readonly attention: readonly LayerAttention[];
  readonly rope: RopeSpec;
  /** How tapped values are rounded before `fc`. */
  readonly tapPrecision: 'f32' | 'f16';
}

export function layerTap(layer: number): TapSource {
  return { kind: 'layer', layer };
}

/**
 * What the config says.
 * @param targetLayers layers of the target: a tap of that number is the last layer's output behind the final norm
 */
export function declaredAssumption(config: DflashConfig, targetLayers: number): Assumption {
  return {
    taps: config.taps.map((tap) => (tap === targetLayers ? { kind: 'final-norm' } : layerTap(tap))),
    maskTokenId: config.maskTokenId,
    blockSize: config.blockSize,
    blockShift: 0,
    contextEdge: 0,
    attention: config.attention,
    rope: config.rope,
    tapPrecision: 'f32',
  };
}

export function sameAssumption(a: Assumption, b: Assumption): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
