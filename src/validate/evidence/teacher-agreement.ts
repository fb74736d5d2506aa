/**
 * Whose choices a drafter has learned: its agreement with what final norm and head make of every layer's output
 * (the logit lens). The last layer's is the target's own choice.
 */
import type { Predictions } from '../probe/predictions.ts';
import type { TargetHead } from '../probe/target-head.ts';
import type { RecordedSequence } from '../recording/recorded-sequence.ts';
import { type Estimate, pairedRatioDifference, type Ratio, ratioEstimate } from '../statistics/estimate.ts';
import { sequenceAcceptance } from './acceptance-walk.ts';
import { forcedRatios } from './evaluate-assumption.ts';

export interface LayerAgreement {
  readonly layer: number;
  /** 1 + mean prefix that agrees with the layer's choices, over all anchors. */
  readonly tau: Estimate;
  /** Agreement with this layer less agreement with the last one. */
  readonly advantage: Estimate;
}

export interface TeacherOptions {
  readonly head: TargetHead;
  readonly sequences: readonly RecordedSequence[];
  /** Of the same sequences, in the same order. */
  readonly predictions: readonly Predictions[];
  /** Layers to look at; the last one is the target's own. */
  readonly layers: readonly number[];
  readonly hidden: number;
  readonly slotShift: number;
  readonly signal?: AbortSignal;
}

/** @returns by layer, in the given order */
export async function teacherAgreement(options: TeacherOptions): Promise<readonly LayerAgreement[]> {
  const { sequences, predictions, layers } = options;
  const rowsFrom = (stream: Float32Array, first: number, end: number) =>
    stream.subarray(first * options.hidden, end * options.hidden);
  const byLayer: (readonly Ratio[])[] = [];
  for (const layer of layers) {
    const ratios: Ratio[] = [];
    for (const [index, sequence] of sequences.entries()) {
      const { tokens, answerStart } = sequence;
      const stream = sequence.layers[layer] as Float32Array;
      // Row r chooses the token at position r + 1; rows of the prompt are not needed.
      const choices = await options.head.choose(rowsFrom(stream, answerStart, tokens.length - 1), options.signal);
      const labels = (offset: number) => (answerStart + offset < tokens.length ? choices[offset - 1] : undefined);
      const acceptance = sequenceAcceptance(predictions[index] as Predictions, labels, options.slotShift);
      ratios.push(...forcedRatios([acceptance]));
    }
    byLayer.push(ratios);
  }
  const last = byLayer.at(-1) as readonly Ratio[];
  return byLayer.map((ratios, index) => ({
    layer: layers[index] as number,
    tau: ratioEstimate(ratios),
    advantage: pairedRatioDifference(ratios, last),
  }));
}
