/** Figures as reports show them. */
import type { Interval } from './interval.ts';

export function formatNumber(value: number | null, digits = 2): string {
  return value === null || !Number.isFinite(value) ? '–' : value.toFixed(digits);
}

/** `1.63 [1.51, 1.75]` */
export function formatInterval({ value, low, high }: Interval, digits = 2): string {
  if (value === null) return '–';
  if (low === null || high === null) return value.toFixed(digits);
  return `${value.toFixed(digits)} [${low.toFixed(digits)}, ${high.toFixed(digits)}]`;
}

/** A share in per cent, without the sign. */
export function formatShare(value: number | null): string {
  return value === null ? '–' : (100 * value).toFixed(1);
}

/** `+0.12 [-0.01, +0.25]` */
export function formatDifference({ value, low, high }: Interval, digits = 2): string {
  if (value === null) return '–';
  const signed = (x: number) => `${x >= 0 ? '+' : ''}${x.toFixed(digits)}`;
  if (low === null || high === null) return signed(value);
  return `${signed(value)} [${signed(low)}, ${signed(high)}]`;
}
