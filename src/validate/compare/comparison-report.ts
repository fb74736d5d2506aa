/** A comparison as tables and as a page. */
import { escapeHtml } from '../report/escape-html.ts';
import { formatDifference, formatInterval, formatShare } from '../report/format-figure.ts';
import type { Interval } from '../report/interval.ts';
import { leftOut } from '../report/left-out.ts';
import { htmlTable, page } from '../report/page.ts';
import { lineChart } from '../report/svg/line-chart.ts';
import { textTable } from '../report/text-table.ts';
import type { Comparison } from './comparison-schema.ts';

interface Table {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function comparisonText(comparison: Comparison): string {
  const { provenance, prompts, complete } = comparison;
  return `${[
    `${provenance.target.folder} · ${prompts} prompts · brackets are 95 % intervals by bootstrap over prompts, differences are paired`,
    ...(complete ? [] : ['INTERRUPTED: the figures are of what was done by then.']),
    ...[leftOut(provenance.prompts) ?? []].flat(),
    comparison.pairs.map(({ words }) => `• ${words}`).join('\n'),
    ...tables(comparison).map(({ header, rows }) => textTable(header, rows)),
  ].join('\n\n')}\n`;
}

export function comparisonHtml(comparison: Comparison): string {
  const { members, pairs, provenance, prompts, complete, settings } = comparison;
  const names = members.map(({ name }) => name).join(', ');
  const missing = leftOut(provenance.prompts);
  const slotLines = (pick: (member: (typeof members)[number]) => readonly Interval[]) =>
    members.map((member) => ({
      name: member.name,
      points: pick(member).map((interval, slot) => ({ x: slot + 1, y: percent(interval) })),
    }));
  return page(names, [
    `<h1>${escapeHtml(names)}</h1>`,
    `<p class="muted">${escapeHtml(provenance.target.folder)} · ${prompts} prompts · temperature ${settings.temperature} · ${settings.weights}. The drafters were asked behind every token of the same ` +
      'answers; differences are paired by prompt, brackets are 95 % intervals by bootstrap over prompts.</p>',
    complete ? '' : '<p class="bad">Interrupted: the figures are of what was done by then.</p>',
    missing === null ? '' : `<p class="bad">${escapeHtml(missing)}</p>`,
    `<ul class="verdict">${pairs.map(({ words }) => `<li>${escapeHtml(words)}</li>`).join('')}</ul>`,
    '<div class="charts">',
    lineChart({
      title: 'Teacher-forced accuracy by slot',
      xLabel: 'slot',
      yLabel: '%',
      lines: slotLines(({ forced }) => forced.accuracyBySlot),
    }),
    lineChart({
      title: 'Given all before',
      xLabel: 'slot',
      yLabel: '%',
      lines: slotLines(({ forced }) => forced.conditionalBySlot),
    }),
    '</div>',
    ...tables(comparison).map(({ header, rows }) => htmlTable(header, rows)),
    `<h2>Provenance</h2><div><span class="muted">command</span> <code>${escapeHtml(provenance.command)}</code></div>`,
    ...provenance.drafters.map(
      ({ name, sha256 }) => `<div><span class="muted">${escapeHtml(name)}</span> <code>${sha256 ?? '–'}</code></div>`,
    ),
  ]);
}

function percent({ value, low, high }: Interval): Interval {
  const scaled = (share: number | null) => (share === null ? null : 100 * share);
  return { value: scaled(value), low: scaled(low), high: scaled(high) };
}

function tables({ members, pairs }: Comparison): Table[] {
  const categories = Object.keys(members[0]?.acceptanceByCategory ?? {});
  const slots = Math.max(...members.map(({ maxDraftTokens }) => maxDraftTokens));
  return [
    {
      header: ['drafter', 'draft tokens', 'tokens per round', 'streak', 'slot 1 %', 'calibration error'],
      rows: members.map(({ name, maxDraftTokens, acceptanceLength, forced }) => [
        name,
        String(maxDraftTokens),
        formatInterval(acceptanceLength),
        formatInterval(forced.streak),
        formatShare(forced.accuracyBySlot[0]?.value ?? null),
        forced.calibration?.expectedCalibrationError?.toFixed(3) ?? '–',
      ]),
    },
    {
      header: [
        'difference',
        'tokens per round',
        'streak',
        'anchors longer/equal/shorter',
        'prompts higher/equal/lower',
        'p',
        'verdict',
      ],
      rows: pairs.map(({ a, b, acceptanceLength, streak, anchors, prompts, p, verdict }) => [
        `${b} − ${a}`,
        formatDifference(acceptanceLength),
        formatDifference(streak),
        `${anchors.longer}/${anchors.equal}/${anchors.shorter}`,
        `${prompts.higher}/${prompts.equal}/${prompts.lower}`,
        p < 0.0001 ? '< 0.0001' : p.toFixed(4),
        verdict,
      ]),
    },
    {
      header: ['slot', ...pairs.map(({ a, b }) => `${b} − ${a}, right of all places`)],
      rows: Array.from({ length: slots }, (_, slot) => [
        String(slot + 1),
        ...pairs.map(({ accuracyBySlot }) =>
          formatDifference(accuracyBySlot[slot] ?? { value: null, low: null, high: null }, 3),
        ),
      ]),
    },
    {
      header: ['category', ...members.map(({ name }) => name), ...pairs.map(({ a, b }) => `${b} − ${a}`)],
      rows: categories.map((category) => [
        category,
        ...members.map(({ acceptanceByCategory }) => (acceptanceByCategory[category]?.value ?? 0).toFixed(2)),
        ...pairs.map(({ acceptanceByCategory }) =>
          formatDifference(acceptanceByCategory[category] ?? { value: null, low: null, high: null }),
        ),
      ]),
    },
  ];
}
