/** The object that `handleSummary` gets, in k6's documented shape. */
import type { MetricContents, MetricType } from '../metrics/metric.ts';
import type { MetricStore } from '../metrics/metric-store.ts';
import type { CheckGroup } from './check-tree.ts';

export interface SummaryMetric {
  readonly type: MetricType;
  readonly contains: MetricContents;
  readonly values: Readonly<Record<string, number>>;
  /** By expression, as written. */
  readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
}

export interface SummaryData {
  readonly root_group: CheckGroup;
  readonly options: { readonly summaryTrendStats: readonly string[]; readonly summaryTimeUnit: string };
  readonly state: { readonly isStdOutTTY: boolean; readonly isStdErrTTY: boolean; readonly testRunDurationMs: number };
  /** Sub-metrics too, under their names with tags. */
  readonly metrics: Readonly<Record<string, SummaryMetric>>;
}

export interface SummaryFacts {
  readonly metrics: MetricStore;
  readonly checks: CheckGroup;
  readonly trendStats: readonly string[];
  readonly durationMs: number;
}

export function summaryData({ metrics, checks, trendStats, durationMs }: SummaryFacts): SummaryData {
  const seconds = durationMs / 1000;
  const entries = metrics.metrics().map(({ name, definition, sink, thresholds }): [string, SummaryMetric] => [
    name,
    {
      type: definition.type,
      contains: definition.contains,
      values: sink.values(trendStats, seconds),
      ...(thresholds.length === 0
        ? {}
        : { thresholds: Object.fromEntries(thresholds.map((it) => [it.source, { ok: it.holds(sink, seconds) }])) }),
    },
  ]);
  return {
    root_group: checks,
    options: { summaryTrendStats: trendStats, summaryTimeUnit: '' },
    state: {
      isStdOutTTY: process.stdout.isTTY ?? false,
      isStdErrTTY: process.stderr.isTTY ?? false,
      testRunDurationMs: durationMs,
    },
    metrics: Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
