import type { MetricContents } from '../metrics/metric.ts';

/** Times arrive in milliseconds, data in bytes. */
export function formatAmount(value: number, contains: MetricContents): string {
  if (contains === 'time') return formatTime(value);
  if (contains === 'data') return formatData(value);
  return String(Number(value.toFixed(4)));
}

export function formatShare(value: number): string {
  return `${(100 * value).toFixed(2)}%`;
}

function formatTime(ms: number): string {
  if (ms === 0) return '0s';
  if (ms < 1) return `${trimmed(ms * 1000)}µs`;
  if (ms < 1000) return `${trimmed(ms)}ms`;
  const seconds = ms / 1000;
  return seconds < 60 ? `${trimmed(seconds)}s` : `${Math.floor(seconds / 60)}m${trimmed(seconds % 60)}s`;
}

function formatData(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  return bytes < 1e6 ? `${Number((bytes / 1000).toPrecision(3))} kB` : `${Number((bytes / 1e6).toPrecision(3))} MB`;
}

function trimmed(value: number): string {
  return String(Number(value.toFixed(2)));
}
