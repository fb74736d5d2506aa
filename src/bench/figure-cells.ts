/** The figures of a point as tables show them; times in milliseconds, medians where not said. */
import { formatInterval, formatNumber, formatShare } from '../validate/report/format-figure.ts';
import type { BenchResult, PointFigures } from './result-schema.ts';

/** What was asked for: percentiles of TTFT and TPOT, and goals of a good answer. */
type Asked = Pick<BenchResult['settings'], 'metric_percentiles' | 'goodput'>;

export function figureHeader({ metric_percentiles: percentiles, goodput }: Asked): string[] {
  return [
    'done',
    'failed',
    'req/s',
    ...(hasGoals(goodput) ? ['good/s'] : []),
    'tok/s',
    'TTFT',
    ...percentiles.map((percent) => `TTFT p${percent}`),
    'TPOT',
    ...percentiles.map((percent) => `TPOT p${percent}`),
    'ITL',
    'ITL/token',
    'E2EL',
    'AL',
    'accepted %',
  ];
}

export function figureCells(point: PointFigures, { metric_percentiles: percentiles, goodput }: Asked): string[] {
  const ms = (name: string) => formatNumber(point.times[name] ?? null, 1);
  return [
    String(point.completed),
    String(point.failed),
    formatNumber(point.request_throughput),
    ...(hasGoals(goodput) ? [formatNumber(point.request_goodput)] : []),
    formatNumber(point.output_throughput, 1),
    ms('median_ttft_ms'),
    ...percentiles.map((percent) => ms(`p${percent}_ttft_ms`)),
    ms('median_tpot_ms'),
    ...percentiles.map((percent) => ms(`p${percent}_tpot_ms`)),
    ms('median_itl_ms'),
    ms('median_itl_per_token_ms'),
    ms('median_e2el_ms'),
    formatInterval(point.spec_decode_acceptance_length),
    formatShare(point.spec_decode_acceptance_rate.value),
  ];
}

function hasGoals(goodput: Asked['goodput']): boolean {
  return Object.keys(goodput).length > 0;
}
