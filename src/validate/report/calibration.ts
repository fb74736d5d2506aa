/** Whether a drafter is right as often as it believes. */
import type { Calibration } from './report-schema.ts';

export interface ConfidentSlot {
  readonly confidence: number;
  readonly correct: boolean;
}

const BINS = 10;

/** Reliability table and expected calibration error over bins of equal width (Guo et al. 2017, section 2). */
export function calibration(slots: readonly ConfidentSlot[]): Calibration {
  const bins = Array.from({ length: BINS }, () => ({ slots: 0, confidence: 0, correct: 0 }));
  for (const { confidence, correct } of slots) {
    const bin = bins[Math.min(Math.floor(confidence * BINS), BINS - 1)]!;
    bin.slots++;
    bin.confidence += confidence;
    bin.correct += Number(correct);
  }
  const total = slots.length;
  const error = bins.reduce((sum, bin) => sum + Math.abs(bin.confidence - bin.correct), 0);
  const excess = bins.reduce((sum, bin) => sum + bin.confidence - bin.correct, 0);
  return {
    slots: total,
    expectedCalibrationError: total === 0 ? null : error / total,
    overconfidence: total === 0 ? null : excess / total,
    bins: bins.map((bin, i) => ({
      from: i / BINS,
      to: (i + 1) / BINS,
      slots: bin.slots,
      confidence: bin.slots === 0 ? null : bin.confidence / bin.slots,
      accuracy: bin.slots === 0 ? null : bin.correct / bin.slots,
    })),
  };
}
