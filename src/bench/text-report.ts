/** The result for a terminal. */
import { formatInterval, formatNumber, formatShare } from '../validate/report/format-figure.ts';
import { textTable } from '../validate/report/text-table.ts';
import { figureCells, figureHeader } from './figure-cells.ts';
import type { BenchResult, PointFigures } from './result-schema.ts';
import { verdictLines } from './verdict-lines.ts';

export function textReport(result: BenchResult): string {
  const { server, settings, points, gains } = result;
  const gainOf = ({ variant, max_concurrency }: PointFigures) =>
    gains.find((gain) => gain.variant === variant && gain.max_concurrency === max_concurrency)?.gain;
  const load = points.filter(({ axis }) => axis === 'load');
  const loadTable = textTable(
    ['clients', 'variant', ...figureHeader(settings), 'gain'],
    load.map((point) => {
      const gain = gainOf(point);
      const shown = gain === undefined ? '–' : formatInterval(gain);
      return [String(point.max_concurrency), point.variant, ...figureCells(point, settings), shown];
    }),
  );
  const other = points.filter(({ axis }) => axis !== 'load');
  const otherTable = textTable(
    ['variant', 'clients', 'temperature', 'prompt tokens', 'out tok/s', 'AL', 'accepted %'],
    other.map((point) => [
      point.variant,
      String(point.max_concurrency),
      String(point.temperature),
      formatNumber(point.mean_input_tokens, 0),
      formatNumber(point.output_throughput, 1),
      formatInterval(point.spec_decode_acceptance_length),
      formatShare(point.spec_decode_acceptance_rate.value),
    ]),
  );
  const categoryTable = textTable(
    ['category', 'variant', 'requests', 'AL', 'gain'],
    result.by_category.map(({ category, variant, requests, spec_decode_acceptance_length: length, gain }) => [
      category,
      variant,
      String(requests),
      formatInterval(length),
      formatInterval(gain),
    ]),
  );
  return [
    `${server.model} at ${server.url}: ${settings.num_prompts} prompts × ${settings.repeats}, ${settings.output_len} tokens each`,
    ...(result.complete ? [] : ['Interrupted: the figures are of what was done by then.']),
    '',
    loadTable,
    'Times are medians in ms; gain: over plain decoding of the same prompts at the same load. [95 % intervals over prompts]',
    ...(other.length === 0 ? [] : ['', otherTable]),
    ...(result.by_category.length === 0 ? [] : ['', categoryTable]),
    '',
    ...verdictLines(result),
    '',
  ].join('\n');
}
