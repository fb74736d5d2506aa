/** The figures of a point as tables show them; times in milliseconds, medians where not said. */
import { formatInterval, formatNumber, formatShare } from '../validate/report/format-figure.ts';
import type { PointFigures } from './result-schema.ts';

export const FIGURE_HEADER = [
  'done',
  'failed',
  'req/s',
  'tok/s',
  'TTFT',
  'TTFT p99',
  'TPOT',
  'TPOT p99',
  'ITL',
  'E2EL',
  'AL',
  'accepted %',
] as const;

export function figureCells(point: PointFigures): string[] {
  const ms = (name: string) => formatNumber(point.times[name] ?? null, 1);
  return [
    String(point.completed),
    String(point.failed),
    formatNumber(point.request_throughput),
    formatNumber(point.output_throughput, 1),
    ms('median_ttft_ms'),
    ms('p99_ttft_ms'),
    ms('median_tpot_ms'),
    ms('p99_tpot_ms'),
    ms('median_itl_ms'),
    ms('median_e2el_ms'),
    formatInterval(point.spec_decode_acceptance_length),
    formatShare(point.spec_decode_acceptance_rate.value),
  ];
}
