/** Thresholds that a report has to reach, for checkpoints of a training run. */
import type { Gate, Report } from './report-schema.ts';

/** Each gate: what it looks at, and whether that should be large or small. */
const FIGURES = {
  minAcceptanceLength: { figure: (report: Report) => report.overall.emittedPerStep.value, least: true },
  minDraftAcceptanceRate: { figure: (report: Report) => report.overall.draftAcceptanceRate.value, least: true },
  minFirstSlotAccuracy: { figure: (report: Report) => report.forced.accuracyBySlot[0]?.value ?? null, least: true },
  minStreak: { figure: (report: Report) => report.forced.streak.value, least: true },
  minSpeedUp: { figure: (report: Report) => report.speed?.speedUp.value ?? null, least: true },
  maxCalibrationError: {
    figure: (report: Report) => report.forced.calibration?.expectedCalibrationError ?? null,
    least: false,
  },
} as const;

export type GateName = keyof typeof FIGURES;
export const GATE_NAMES: ReadonlySet<string> = new Set(Object.keys(FIGURES));
export type Thresholds = Readonly<Partial<Record<GateName, number>>>;

/** A figure without a value passes no gate. */
export function checkGates(report: Report, thresholds: Thresholds): Gate[] {
  return (Object.keys(FIGURES) as GateName[]).flatMap((name): Gate[] => {
    const threshold = thresholds[name];
    if (threshold === undefined) return [];
    const { figure, least } = FIGURES[name];
    const value = figure(report);
    return [{ name, threshold, value, passed: value !== null && (least ? value >= threshold : value <= threshold) }];
  });
}
