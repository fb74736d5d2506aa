/** The summary at the end of a test, for a terminal. */
import type { MetricStore } from '../metrics/metric-store.ts';
import type { CheckGroup } from './check-tree.ts';
import { formatAmount, formatShare } from './format-value.ts';
import type { SummaryData, SummaryMetric } from './summary-data.ts';

export interface TextSummaryOptions {
  readonly colours: boolean;
}

const GREEN = 32;
const RED = 31;
const FAINT = 2;

/** @param store of the same test, which knows what each threshold was compared with */
export function textSummary(data: SummaryData, store: MetricStore, { colours }: TextSummaryOptions): string {
  const paint = (code: number, text: string) => (colours ? `\x1b[${code}m${text}\x1b[0m` : text);
  const mark = (ok: boolean) => (ok ? paint(GREEN, '✓') : paint(RED, '✗'));
  const seconds = data.state.testRunDurationMs / 1000;
  const thresholds = store
    .metrics()
    .filter((metric) => metric.thresholds.length > 0)
    .flatMap(({ name, definition, sink, thresholds: all }) => [
      `    ${name}`,
      ...all.map((threshold) => {
        const value = sink.aggregate(threshold.aggregation, seconds) ?? 0;
        const shown = definition.type === 'rate' ? formatShare(value) : formatAmount(value, definition.contains);
        return `    ${mark(threshold.holds(sink, seconds))} '${threshold.source}' ${threshold.aggregation}=${shown}`;
      }),
      '',
    ]);
  const checks = checkLines(data.root_group, 4, mark);
  return [
    '',
    ...(thresholds.length === 0 ? [] : ['  █ THRESHOLDS', '', ...thresholds]),
    '  █ TOTAL RESULTS',
    '',
    ...(checks.length === 0 ? [] : [...checks, '']),
    ...sections(data, (text) => paint(FAINT, text)),
    '',
  ].join('\n');
}

function checkLines(group: CheckGroup, indent: number, mark: (ok: boolean) => string): string[] {
  const pad = ' '.repeat(indent);
  return [
    ...(group.name === '' ? [] : [`${pad.slice(2)}█ ${group.name}`]),
    ...group.checks.flatMap(({ name, passes, fails }) => [
      `${pad}${mark(fails === 0)} ${name}`,
      ...(fails === 0 ? [] : [`${pad}  ↳ ${Math.floor((100 * passes) / (passes + fails))}% — ✓ ${passes} / ✗ ${fails}`]),
    ]),
    ...group.groups.flatMap((inner) => checkLines(inner, indent + 2, mark)),
  ];
}

const SECTIONS: readonly (readonly [title: string, prefixes: readonly string[]])[] = [
  ['HTTP', ['http_']],
  ['WEBSOCKET', ['ws_']],
  ['EXECUTION', ['vus', 'iteration', 'dropped_', 'group_duration', 'checks']],
  ['NETWORK', ['data_']],
];
const WIDTH = 42;

function sections(data: SummaryData, faint: (text: string) => string): string[] {
  const titleOf = (name: string) =>
    SECTIONS.find(([, prefixes]) => prefixes.some((prefix) => name.startsWith(prefix)))?.[0] ?? 'CUSTOM';
  const names = Object.keys(data.metrics);
  return ['CUSTOM', ...SECTIONS.map(([title]) => title)].flatMap((title) => {
    const own = names.filter((name) => titleOf(name) === title);
    return own.length === 0 ? [] : [`    ${title}`, ...own.map((name) => metricLine(name, data.metrics[name]!, faint)), ''];
  });
}

function metricLine(name: string, metric: SummaryMetric, faint: (text: string) => string): string {
  const [, tags] = /^[^{]+(\{.*\})$/.exec(name) ?? [];
  const label = tags === undefined ? name : `  ${tags.replace('{', '{ ').replace('}', ' }')}`;
  return `    ${label}${faint('.'.repeat(Math.max(WIDTH - label.length, 2)))}: ${valueWords(metric)}`;
}

function valueWords({ type, contains, values }: SummaryMetric): string {
  const amount = (value: number | undefined) => formatAmount(value ?? 0, contains);
  switch (type) {
    case 'counter':
      return `${amount(values['count'])} ${formatAmount(values['rate'] ?? 0, contains === 'data' ? 'data' : 'default')}/s`;
    case 'gauge':
      return `${amount(values['value'])} min=${amount(values['min'])} max=${amount(values['max'])}`;
    case 'rate': {
      const { passes = 0, fails = 0 } = values;
      return `${formatShare(values['rate'] ?? 0)} ${passes} out of ${passes + fails}`;
    }
    case 'trend':
      return Object.entries(values)
        .map(([stat, value]) => `${stat}=${stat === 'count' ? value : amount(value)}`)
        .join(' ');
  }
}
