import type { TokenId } from '../../core/token.ts';

/**
 * What a drafter says behind every anchor of one sequence. Anchor a is the answer's token a, from 0 to answer length - 2;
 * row a · slots + k is slot k of its block, slot 0 being the anchor's own.
 */
export interface Predictions {
  readonly anchors: number;
  readonly slots: number;
  /** [anchors · slots]: most likely token. */
  readonly ids: readonly TokenId[] | Int32Array;
  /** [anchors · slots]: its probability. */
  readonly probabilities: Float32Array;
}
