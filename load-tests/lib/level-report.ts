/** Summaries that compare load levels or variants: a table in place of the long list. */
import { serverFacts } from './server-state.ts';
import type { Tags } from './types.ts';

/** What `handleSummary` gets. */
export interface SummaryData {
  readonly metrics: Readonly<
    Record<
      string,
      {
        readonly values: Readonly<Record<string, number>>;
        readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
      }
    >
  >;
}

/** The metrics that a table shows, and a figure that makes k6 keep their sub-metrics. */
export const LEVEL_METRICS: Readonly<Record<string, string>> = {
  llm_requests: 'count',
  llm_ttft: 'p(95)',
  llm_tpot: 'p(95)',
  llm_e2e: 'p(95)',
  llm_goodput: 'rate',
  llm_errors: 'count',
  llm_output_tokens: 'count',
  spec_acceptance_length: 'avg',
  spec_acceptance_rate: 'rate',
};

/**
 * @param tags that pick one level
 * @throws Error for what no threshold keeps: a 0 in its place would look like a figure
 */
export function figure(data: SummaryData, metric: string, tags: Tags, value: string): number {
  const inside = Object.entries(tags)
    .map(([tag, text]) => `${tag}:${text}`)
    .join(',');
  const found = data.metrics[`${metric}{${inside}}`]?.values[value];
  if (found === undefined) throw new Error(`Expected a summary with ${value} of ${metric}{${inside}}, got none`);
  return found;
}

export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]) => `  ${row.map((cell, i) => cell.padStart(widths[i] ?? 0)).join('  ')}`;
  return [line(header), `  ${widths.map((width) => '-'.repeat(width)).join('  ')}`, ...rows.map(line)].join('\n');
}

/** Thresholds that were crossed, but for those that only keep a sub-metric. */
export function crossedThresholds(data: SummaryData): string {
  const crossed = Object.entries(data.metrics).flatMap(([name, { thresholds = {} }]) =>
    Object.entries(thresholds)
      .filter(([, { ok }]) => !ok)
      .map(([source]) => `  ✗ ${name}: ${source}`),
  );
  return crossed.length === 0 ? '  ✓ all thresholds hold' : crossed.join('\n');
}

/** @param value 0 where nothing was measured, which is no time */
export function milliseconds(value: number): string {
  if (value === 0) return '–';
  return value < 100 ? value.toFixed(1) : value.toFixed(0);
}

/** @param length at least 1, or 0 where nothing was drafted */
export function acceptanceLength(length: number): string {
  return length === 0 ? '–' : length.toFixed(2);
}

/** Where the script is told to (`SUMMARY=file`), the whole data too, and where it comes from. */
export function outputs(data: SummaryData, text: string): Record<string, string> {
  const file = __ENV['SUMMARY'];
  const stdout = `\n${text}\n\n`;
  if (file === undefined) return { stdout };
  // `blockdraft load` says which commit, command and machine; k6 does not.
  const provenance: unknown = JSON.parse(__ENV['PROVENANCE'] ?? 'null');
  const report = { provenance: provenance ?? { date: new Date().toISOString() }, server: serverFacts(), ...data };
  return { stdout, [file]: `${JSON.stringify(report, null, 2)}\n` };
}
