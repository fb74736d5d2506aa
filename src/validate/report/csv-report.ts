/**
 * The files of speculators' evaluation scripts (`scripts/evaluate/perf_utils.py`) with their columns: `acceptance.csv`,
 * `perf_results.csv` and `eval_command.txt`. Its plots of throughput draw rows of constant request rates, and ours are of one
 * request after another, so `perf_results.csv` is for tables.
 */
import type { Acceptance, Report } from './report-schema.ts';

type Cell = string | number;

/** @returns contents by file name */
export function csvReport(report: Report): Readonly<Record<string, string>> {
  const groups = Object.entries(report.categories);
  const columns = acceptanceColumns(report.settings.maxDraftTokens);
  const files: Record<string, string> = {
    'acceptance.csv': csv(
      ['subset', ...columns],
      groups.map(([subset, group]) => [subset, ...acceptanceCells(group)]),
    ),
    'eval_command.txt': evalCommand(report),
  };
  const { speed } = report;
  if (speed !== null) {
    files['perf_results.csv'] = csv(
      [...PERFORMANCE_COLUMNS, ...columns],
      Object.entries(speed.byCategory).map(([subset, timed]) => [
        subset,
        // A closed loop of single requests has no target rate.
        ...['synchronous', ''],
        ...[1000 / timed.medianLatencyMs, timed.medianLatencyMs / 1000, timed.medianInterTokenMs ?? ''],
        ...[timed.medianFirstTokenMs, timed.medianTokensPerSecond, timed.tokens],
        ...acceptanceCells(timed.acceptance),
      ]),
    );
  }
  return files;
}

const PERFORMANCE_COLUMNS = [
  'subset',
  'strategy',
  'target_rate',
  'rps_median',
  'latency_median_s',
  'itl_median_ms',
  'ttft_median_ms',
  'output_tps_median',
  'total_output_tokens',
];

function acceptanceColumns(maxDraftTokens: number): string[] {
  const places = Array.from({ length: maxDraftTokens }, (_, place) => `acceptance_at_pos_${place}`);
  return ['num_drafts', 'num_draft_tokens', 'num_accepted_tokens', 'acceptance_length', ...places];
}

/** There a figure without drafts is 0. */
function acceptanceCells(group: Acceptance): Cell[] {
  const drafts = group.acceptanceHistogram.reduce((sum, rounds) => sum + rounds, 0);
  const accepted = group.acceptanceHistogram.reduce((sum, rounds, tokens) => sum + rounds * tokens, 0);
  const drafted = Object.entries(group.acceptanceHistogramByDraftLength).reduce(
    (sum, [length, counts]) => sum + Number(length) * counts.reduce((rounds, count) => rounds + count, 0),
    0,
  );
  return [
    drafts,
    drafted,
    accepted,
    drafts === 0 ? 0 : 1 + accepted / drafts,
    ...group.perPosition.map(({ value }) => value ?? 0),
  ];
}

function csv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [header, ...rows].map((row) => `${row.map(cell).join(',')}\n`).join('');
}

function cell(value: Cell): string {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function evalCommand({ provenance }: Report): string {
  const { date, commit, version, onnxRuntime, node, command } = provenance;
  return [
    `# Timestamp: ${date}`,
    `# Git SHA: ${commit ?? 'unknown'}`,
    `# blockdraft: ${version}`,
    `# onnxruntime: ${onnxRuntime}`,
    `# node: ${node}`,
    command,
    '',
  ].join('\n');
}
