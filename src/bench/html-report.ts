/** The result as one page with charts. */
import { escapeHtml } from '../validate/report/escape-html.ts';
import { formatNumber } from '../validate/report/format-figure.ts';
import type { Interval } from '../validate/report/interval.ts';
import { htmlTable, page } from '../validate/report/page.ts';
import { barChart } from '../validate/report/svg/bar-chart.ts';
import { lineChart } from '../validate/report/svg/line-chart.ts';
import { PLAIN } from './bench-point.ts';
import { figureCells, figureHeader } from './figure-cells.ts';
import type { BenchResult, PointFigures } from './result-schema.ts';
import { clients, verdictLines } from './verdict-lines.ts';

const STYLE = `<style>
table.heat td { text-align: center; padding: 7px 16px; border: 2px solid #fff; border-radius: 4px; } table.heat th { text-align: center; padding: 4px 16px; border: 0; }
table.heat th:first-child { text-align: left; } table.heat small { display: block; color: #555; font-size: 11px; }
</style>`;

export function htmlReport(result: BenchResult): string {
  const { server, settings, provenance } = result;
  const drafting = variantsOf(result).filter((name) => name !== PLAIN);
  return page(`Load on ${server.model}`, [
    STYLE,
    `<h1>Load on ${escapeHtml(server.model)}</h1>`,
    `<p class="muted">${settings.num_prompts} prompts × ${settings.repeats} for each point · answers of up to ${settings.output_len} tokens · ` +
      `${escapeHtml(provenance.date.slice(0, 16).replace('T', ' '))} UTC. Bars and brackets are 95 % intervals by bootstrap over prompts.</p>`,
    result.complete ? '' : '<p class="bad">Interrupted: the figures are of what was done by then.</p>',
    cards(result),
    `<ul class="verdict">${verdictLines(result)
      .map((line) => `<li>${escapeHtml(line)}</li>`)
      .join('')}</ul>`,
    ...(result.gains.length === 0
      ? []
      : [
          '<h2>What speculation gains</h2>',
          heatTable(result),
          `<div class="charts">${gainChart(result)}${categoryGain(result)}</div>`,
        ]),
    `<h2>Throughput and latency</h2><div class="charts">${tradeOff(result)}${throughput(result)}${timeChart(result, 'median_ttft_ms', 'Time to the first token, median')}${timeChart(result, 'median_tpot_ms', 'Time per output token, median')}</div>`,
    ...(drafting.length === 0
      ? []
      : [
          `<h2>Acceptance</h2><div class="charts">${acceptanceByLoad(result)}${byPosition(result)}${categoryAcceptance(result)}${byTemperature(result)}${byContext(result)}</div>`,
        ]),
    `<h2>All figures</h2>${figuresTable(result)}`,
    origin(result),
  ]);
}

/** Plain decoding last, so that each drafter has one colour in all charts. */
function variantsOf({ points }: BenchResult): readonly string[] {
  const names = [...new Set(points.map(({ variant }) => variant))];
  return [...names.filter((name) => name !== PLAIN), ...names.filter((name) => name === PLAIN)];
}

function loadPoints({ points }: BenchResult, variant: string): readonly PointFigures[] {
  return points.filter((point) => point.axis === 'load' && point.variant === variant);
}

const exact = (value: number | null | undefined): Interval => ({ value: value ?? null, low: null, high: null });

function cards(result: BenchResult): string {
  const card = (value: string, label: string, kind = '') =>
    `<div class="card"><b class="${kind}">${escapeHtml(value)}</b><span>${escapeHtml(label)}</span></div>`;
  const best = result.gains.reduce<BenchResult['gains'][number] | null>(
    (top, gain) => ((gain.gain.value ?? 0) > (top?.gain.value ?? 0) ? gain : top),
    null,
  );
  const fastest = result.points.reduce<PointFigures | null>(
    (top, point) => (point.output_throughput > (top?.output_throughput ?? 0) ? point : top),
    null,
  );
  const longest = result.points
    .filter(({ axis }) => axis === 'load')
    .reduce<PointFigures | null>(
      (top, point) =>
        (point.spec_decode_acceptance_length.value ?? 0) > (top?.spec_decode_acceptance_length.value ?? 0) ? point : top,
      null,
    );
  const { compared, differing } = result.lossless;
  return `<div class="cards">${[
    best === null
      ? ''
      : card(
          `${formatNumber(best.gain.value)} ×`,
          `best gain: ${best.variant}, concurrency ${best.max_concurrency}`,
          (best.gain.value ?? 0) > 1 ? 'good' : 'bad',
        ),
    fastest === null
      ? ''
      : card(
          `${formatNumber(fastest.output_throughput, 0)} tok/s`,
          `most: ${fastest.variant}, concurrency ${fastest.max_concurrency}`,
        ),
    longest === null
      ? ''
      : card(formatNumber(longest.spec_decode_acceptance_length.value), `acceptance length of ${longest.variant}`),
    compared === 0
      ? ''
      : differing.length === 0
        ? card('lossless', `${compared} answers compared`, 'good')
        : card(`${differing.length} differ`, `of ${compared} answers`, 'bad'),
  ].join('')}</div>`;
}

/** Green where it pays, red where it costs; pale where the interval has both. */
function heatTable({ gains }: BenchResult): string {
  const loads = [...new Set(gains.map(({ max_concurrency }) => max_concurrency))];
  const variants = [...new Set(gains.map(({ variant }) => variant))];
  const cell = (variant: string, load: number) => {
    const gain = gains.find((one) => one.variant === variant && one.max_concurrency === load)?.gain;
    if (gain?.value == null) return '<td>–</td>';
    const isClear = gain.low === null || gain.high === null || gain.low > 1 || gain.high < 1;
    const strength = Math.min(Math.abs(Math.log2(gain.value)), 1) * (isClear ? 0.7 : 0.25) + 0.05;
    const colour = gain.value >= 1 ? '0,158,115' : '213,94,0';
    return `<td style="background:rgba(${colour},${strength.toFixed(2)})">${gain.value.toFixed(2)} ×<small>${gain.low === null ? '' : `${gain.low.toFixed(2)} – ${gain.high?.toFixed(2)}`}</small></td>`;
  };
  const header = `<tr><th>clients</th>${loads.map((load) => `<th>${load}</th>`).join('')}</tr>`;
  const rows = variants.map(
    (variant) => `<tr><th>${escapeHtml(variant)}</th>${loads.map((load) => cell(variant, load)).join('')}</tr>`,
  );
  return (
    `<div class="scroll"><table class="heat"><thead>${header}</thead><tbody>${rows.join('')}</tbody></table></div>` +
    '<p class="muted">How many times faster an answer is than by plain decoding of the same prompt at the same load. Pale: the interval has 1 in it.</p>'
  );
}

/** Loads double from one to the next, so their logarithm is drawn. */
function loadAxis(result: BenchResult) {
  const loads = [...new Set(result.points.filter(({ axis }) => axis === 'load').map(({ max_concurrency }) => max_concurrency))];
  return { xLabel: 'clients at a time', xNames: loads.map((load) => ({ at: Math.log2(load), name: String(load) })) };
}

function loadLines(result: BenchResult, variants: readonly string[], y: (point: PointFigures) => Interval) {
  return variants.map((name) => ({
    name,
    points: loadPoints(result, name).map((point) => ({ x: Math.log2(point.max_concurrency), y: y(point) })),
  }));
}

function gainChart(result: BenchResult): string {
  const variants = [...new Set(result.gains.map(({ variant }) => variant))];
  return lineChart({
    title: 'Gain by load',
    ...loadAxis(result),
    yLabel: 'times plain decoding',
    level: { y: 1, name: 'plain decoding' },
    lines: variants.map((name) => ({
      name,
      points: result.gains
        .filter(({ variant }) => variant === name)
        .map(({ max_concurrency, gain }) => ({ x: Math.log2(max_concurrency), y: gain })),
    })),
    notes: Object.entries(result.break_even).flatMap(([variant, at]) =>
      at === null || at <= (result.gains[0]?.max_concurrency ?? 1)
        ? []
        : [{ x: Math.log2(at), y: 1, text: `${variant} up to ${at.toFixed(1)}` }],
    ),
  });
}

function tradeOff(result: BenchResult): string {
  return lineChart({
    title: 'Throughput against latency',
    xLabel: 'time of an answer, median ms',
    yLabel: 'output tokens/s',
    xDomain: [
      0,
      Math.max(...result.points.filter(({ axis }) => axis === 'load').map(({ times }) => times['median_e2el_ms'] ?? 0)) * 1.05,
    ],
    lines: variantsOf(result).map((name) => ({
      name,
      points: loadPoints(result, name).map(({ times, output_throughput }) => ({
        x: times['median_e2el_ms'] ?? 0,
        y: exact(output_throughput),
      })),
    })),
    notes: Object.entries(result.knees).flatMap(([variant, load]) => {
      const point = loadPoints(result, variant).find(({ max_concurrency }) => max_concurrency === load);
      const x = point?.times['median_e2el_ms'];
      return point === undefined || x == null ? [] : [{ x, y: point.output_throughput, text: `knee, ${load}` }];
    }),
  });
}

function throughput(result: BenchResult): string {
  return lineChart({
    title: 'Throughput by load',
    ...loadAxis(result),
    yLabel: 'output tokens/s',
    lines: loadLines(result, variantsOf(result), ({ output_throughput }) => exact(output_throughput)),
  });
}

function timeChart(result: BenchResult, figure: string, title: string): string {
  return lineChart({
    title,
    ...loadAxis(result),
    yLabel: 'ms',
    lines: loadLines(result, variantsOf(result), ({ times }) => exact(times[figure])),
  });
}

const draftingVariants = (result: BenchResult) => variantsOf(result).filter((name) => name !== PLAIN);

function acceptanceByLoad(result: BenchResult): string {
  return lineChart({
    title: 'Acceptance length by load',
    ...loadAxis(result),
    yLabel: 'tokens per round',
    lines: loadLines(result, draftingVariants(result), (point) => point.spec_decode_acceptance_length),
  });
}

function byPosition(result: BenchResult): string {
  const lines = draftingVariants(result).flatMap((name) => {
    const [first] = loadPoints(result, name);
    if (first === undefined) return [];
    return [
      {
        name,
        points: first.spec_decode_per_position_acceptance_rates.map((rate, place) => ({ x: place + 1, y: exact(rate) })),
      },
    ];
  });
  const longest = Math.max(0, ...lines.map(({ points }) => points.length));
  return lineChart({
    title: 'Accepted at each place of a draft',
    xLabel: 'place',
    xNames: Array.from({ length: longest }, (_, place) => ({ at: place + 1, name: String(place + 1) })),
    yLabel: 'share',
    yDomain: [0, 1],
    lines,
  });
}

/** The points of the first load, and those of the axis. */
function along(result: BenchResult, axis: 'temperature' | 'context', x: (point: PointFigures) => number) {
  const lines = draftingVariants(result).map((name) => ({
    name,
    points: [...loadPoints(result, name).slice(0, 1), ...result.points.filter((it) => it.axis === axis && it.variant === name)]
      .map((point) => ({ x: x(point), y: point.spec_decode_acceptance_length }))
      .sort((a, b) => a.x - b.x),
  }));
  return lines.some(({ points }) => points.length > 1) ? lines : [];
}

function byTemperature(result: BenchResult): string {
  const lines = along(result, 'temperature', ({ temperature }) => temperature);
  return lineChart({ title: 'Acceptance length by temperature', xLabel: 'temperature', yLabel: 'tokens per round', lines });
}

function byContext(result: BenchResult): string {
  const lines = along(result, 'context', ({ mean_input_tokens }) => mean_input_tokens);
  return lineChart({
    title: 'Acceptance length by context',
    xLabel: 'tokens of the prompt, mean',
    yLabel: 'tokens per round',
    lines,
  });
}

function categoryBars(
  result: BenchResult,
  title: string,
  yLabel: string,
  value: (entry: BenchResult['by_category'][number]) => Interval,
): string {
  const [first] = [...new Set(result.by_category.map(({ variant }) => variant))];
  if (first === undefined) return '';
  return barChart({
    title: `${title} (${first})`,
    xLabel: 'category',
    yLabel,
    bars: result.by_category
      .filter(({ variant }) => variant === first)
      .map((entry) => ({ name: entry.category, y: value(entry) })),
  });
}

function categoryGain(result: BenchResult): string {
  const quiet = Math.min(...result.gains.map(({ max_concurrency }) => max_concurrency));
  return categoryBars(result, `Gain by category, ${clients(quiet)}`, 'times plain decoding', ({ gain }) => gain);
}

function categoryAcceptance(result: BenchResult): string {
  return categoryBars(
    result,
    'Acceptance length by category',
    'tokens per round',
    (entry) => entry.spec_decode_acceptance_length,
  );
}

function figuresTable({ points, settings }: BenchResult): string {
  return (
    htmlTable(
      ['variant', 'clients', 'temp.', 'prompt', ...figureHeader(settings)],
      points.map((point) => {
        const { variant, max_concurrency, temperature, mean_input_tokens } = point;
        const asked = [variant, String(max_concurrency), String(temperature), formatNumber(mean_input_tokens, 0)];
        return [...asked, ...figureCells(point, settings)];
      }),
    ) +
    '<p class="muted">Times in ms, medians where not said. good/s: answers within all goals, a second. TTFT: to the first text. TPOT: (end − first text) / (tokens − 1). ITL: between deliveries, which have ' +
    'several tokens each with speculation; /token: over the tokens of the delivery. AL: 1 + accepted / rounds with a draft. Knee: most throughput for the mean time of an answer.</p>'
  );
}

function origin({ provenance, server, settings }: BenchResult): string {
  const rows = [
    ['command', provenance.command],
    ['version', `${provenance.version}${provenance.commit === null ? '' : ` (${provenance.commit})`}`],
    ['server', `${server.url} · version ${server.version ?? 'unknown'}`],
    ...(server.drafters ?? []).map(({ name, kind, max_draft_tokens, length_policy }) => [
      'drafter',
      `${name} · ${kind} · up to ${max_draft_tokens} tokens, ${length_policy}`,
    ]),
    ['prompts', `${settings.dataset} · ${settings.num_prompts} used · sha256 ${settings.dataset_sha256.slice(0, 16)}…`],
    ['machine', `${provenance.cpu} · ${provenance.cores} cores · ${provenance.memoryGiB} GiB · Node ${provenance.node}`],
  ];
  return `<h2>Provenance</h2>${rows.map(([key, value]) => `<div><span class="muted">${key}</span> <code>${escapeHtml(value ?? '')}</code></div>`).join('')}`;
}
