/** Which context rows and block slots a block's rows see, as numbers added to attention scores. */
import type { LayerAttention } from '../../drafter/dflash/dflash-config.ts';

export interface BlockShape {
  readonly anchors: number;
  /** Slots of a block. */
  readonly slots: number;
  /** Rows of context. */
  readonly context: number;
  /** Position of anchor 0; anchor a stands at this + a. */
  readonly answerStart: number;
  /** A block sees context rows below its anchor's position + this. */
  readonly edge: number;
}

/** Finite, so that a row that sees nothing is uniform and not NaN. */
const HIDDEN = -1e30;

/** @param bias [anchors · slots, context], overwritten */
export function contextBias(shape: BlockShape, { window }: LayerAttention, bias: Float32Array): void {
  const { anchors, slots, context, answerStart, edge } = shape;
  for (let anchor = 0; anchor < anchors; anchor++) {
    const end = Math.min(answerStart + anchor + edge, context);
    for (let slot = 0; slot < slots; slot++) {
      const first = window === null ? 0 : Math.max(answerStart + anchor + slot - window + 1, 0);
      const row = (anchor * slots + slot) * context;
      bias.fill(HIDDEN, row, row + context);
      if (first < end) bias.fill(0, row + first, row + end);
    }
  }
}

/** @param bias [anchors · slots, slots], overwritten */
export function blockBias(shape: BlockShape, { causal, window }: LayerAttention, bias: Float32Array): void {
  const { anchors, slots } = shape;
  for (let row = 0; row < anchors * slots; row++) {
    const slot = row % slots;
    for (let key = 0; key < slots; key++) {
      const seen = (!causal || key <= slot) && (window === null || Math.abs(slot - key) < window);
      bias[row * slots + key] = seen ? 0 : HIDDEN;
    }
  }
}
