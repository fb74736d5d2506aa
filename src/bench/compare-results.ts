/** Two results side by side, point by point. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import { escapeHtml } from '../validate/report/escape-html.ts';
import { formatInterval, formatNumber } from '../validate/report/format-figure.ts';
import type { Interval } from '../validate/report/interval.ts';
import { htmlTable, page } from '../validate/report/page.ts';
import { textTable } from '../validate/report/text-table.ts';
import { type BenchResult, benchResultSchema, type PointFigures } from './result-schema.ts';

/** @throws AppError `invalid_config` naming the file */
export function readResult(file: string): BenchResult {
  try {
    return benchResultSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    throw new AppError(
      'invalid_config',
      `Expected a file that bench-serve wrote with --save-result, got ${file}: ${reasonOf(cause as Error)}; correct the path`,
      { cause },
    );
  }
}

/** In one line: of all that a schema objects to, the first says enough. */
function reasonOf(cause: Error): string {
  if (!(cause instanceof z.ZodError)) return cause.message;
  const [issue] = cause.issues;
  return `${issue?.path.join('.')}: ${issue?.message}`;
}

const HEADER = [
  'variant',
  'clients',
  'temp.',
  'context',
  'tok/s a',
  'tok/s b',
  'b / a',
  'TTFT a',
  'TTFT b',
  'TPOT a',
  'TPOT b',
  'AL a',
  'AL b',
  'AL',
];

export function comparisonText(a: BenchResult, b: BenchResult): string {
  const rows = rowsOf(a, b);
  return [textTable(HEADER, rows), ...notes(a, b), ''].join('\n');
}

export function comparisonHtml(a: BenchResult, b: BenchResult): string {
  return page('Two measurements of a server', [
    '<h1>Two measurements of a server</h1>',
    `<p class="muted">a: ${escapeHtml(origin(a))}<br>b: ${escapeHtml(origin(b))}</p>`,
    htmlTable(HEADER, rowsOf(a, b)),
    ...notes(a, b).map((note) => `<p>${escapeHtml(note)}</p>`),
  ]);
}

function origin({ server, provenance, settings }: BenchResult): string {
  return `${server.model}, ${provenance.date.slice(0, 16)}, commit ${provenance.commit ?? 'unknown'}, ${settings.num_prompts} prompts × ${settings.repeats}, ${provenance.cpu}`;
}

function rowsOf(a: BenchResult, b: BenchResult): string[][] {
  const rows = a.points.flatMap((first) => {
    const second = b.points.find((point) => isSame(point, first));
    if (second === undefined) return [];
    const ms = ({ times }: PointFigures, name: string) => formatNumber(times[name] ?? null, 1);
    return [
      [
        first.variant,
        String(first.max_concurrency),
        String(first.temperature),
        String(first.context_len),
        formatNumber(first.output_throughput, 1),
        formatNumber(second.output_throughput, 1),
        formatNumber(second.output_throughput / first.output_throughput),
        ms(first, 'median_ttft_ms'),
        ms(second, 'median_ttft_ms'),
        ms(first, 'median_tpot_ms'),
        ms(second, 'median_tpot_ms'),
        formatInterval(first.spec_decode_acceptance_length),
        formatInterval(second.spec_decode_acceptance_length),
        verdict(first.spec_decode_acceptance_length, second.spec_decode_acceptance_length),
      ],
    ];
  });
  if (rows.length > 0) return rows;
  throw new AppError(
    'invalid_config',
    'Expected two results with points in common, got none; measure the same variants at the same loads',
  );
}

function isSame(one: PointFigures, other: PointFigures): boolean {
  return (['axis', 'variant', 'max_concurrency', 'temperature', 'context_len'] as const).every(
    (key) => one[key] === other[key],
  );
}

/** Intervals that do not meet are a difference that noise does not explain. */
function verdict(a: Interval, b: Interval): string {
  if (a.low === null || a.high === null || b.low === null || b.high === null) return '–';
  if (b.low > a.high) return 'better';
  return b.high < a.low ? 'worse' : 'no clear difference';
}

function notes(a: BenchResult, b: BenchResult): string[] {
  const same = (what: string, first: string | number, second: string | number) =>
    first === second ? [] : [`Different ${what}: ${first} and ${second}. Read the differences with that in mind.`];
  return [
    ...same('prompts', a.settings.dataset_sha256.slice(0, 12), b.settings.dataset_sha256.slice(0, 12)),
    ...same('numbers of prompts', a.settings.num_prompts, b.settings.num_prompts),
    ...same('answer lengths', a.settings.output_len, b.settings.output_len),
    ...same('machines', `${a.provenance.cpu}, ${a.provenance.cores} cores`, `${b.provenance.cpu}, ${b.provenance.cores} cores`),
    ...same('models', a.server.model, b.server.model),
  ];
}
