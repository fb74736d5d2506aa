/** Thresholds that the newest checkpoint of each run has to reach. */
import type { GateName, Thresholds } from '../report/gates.ts';
import type { WatchGate, WatchPoint } from './watch-schema.ts';

type Figure = (point: WatchPoint) => number | null;

/** Gates that have a figure without serving and timing; all of them ask for at least so much. */
const FIGURES: Readonly<Partial<Record<GateName, Figure>>> = {
  minAcceptanceLength: ({ acceptanceLength }) => acceptanceLength.value,
  minFirstSlotAccuracy: ({ accuracyBySlot }) => accuracyBySlot[0]?.value ?? null,
  minStreak: ({ streak }) => streak.value,
};

export const WATCH_GATES: ReadonlySet<string> = new Set(Object.keys(FIGURES));

/** A run without points passes none. */
export function checkNewest(runs: readonly string[], points: readonly WatchPoint[], thresholds: Thresholds): WatchGate[] {
  return runs.flatMap((run) => {
    const own = points.filter((point) => point.run === run);
    const newest = own.toSorted((a, b) => a.step - b.step).at(-1) ?? null;
    return Object.entries(FIGURES).flatMap(([name, figure]): WatchGate[] => {
      const threshold = thresholds[name as GateName];
      if (threshold === undefined) return [];
      const value = newest === null ? null : figure(newest);
      return [{ run, step: newest?.step ?? null, name, threshold, value, passed: value !== null && value >= threshold }];
    });
  });
}
