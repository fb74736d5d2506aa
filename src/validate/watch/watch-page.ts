/** Training runs over steps, as a page and as text. */
import { escapeHtml } from '../report/escape-html.ts';
import { formatDifference, formatInterval, formatNumber, formatShare } from '../report/format-figure.ts';
import type { Interval } from '../report/interval.ts';
import { leftOut } from '../report/left-out.ts';
import { htmlTable, page } from '../report/page.ts';
import { type Line, lineChart } from '../report/svg/line-chart.ts';
import { textTable } from '../report/text-table.ts';
import type { LoggedPoint, Watch, WatchPoint } from './watch-schema.ts';

export function watchHtml(watch: Watch): string {
  const runs = runNames(watch);
  const figure = (title: string, measured: (point: WatchPoint) => Interval, logged: (point: LoggedPoint) => number | null) =>
    lineChart({ title, xLabel: 'step', yLabel: title.toLowerCase(), lines: lines(watch, measured, logged) });
  const newest = runs.flatMap((run) => {
    const point = watch.points.filter((own) => own.run === run).at(-1);
    return point === undefined ? [] : [point];
  });
  return page(runs.join(', '), [
    `<h1>${escapeHtml(runs.join(', '))}</h1>`,
    `<p class="muted">Checkpoints on ${escapeHtml(watch.target)}, asked behind every token of the same answers. Bars are 95 % intervals by bootstrap over prompts; ` +
      'dashed lines are from the training logs, which measure other text.</p>',
    `<ul class="verdict">${watch.overlays.map(({ words }) => `<li>${escapeHtml(words)}</li>`).join('')}</ul>`,
    '<div class="charts">',
    figure(
      'Tokens per round',
      ({ acceptanceLength }) => acceptanceLength,
      () => null,
    ),
    figure(
      'Streak',
      ({ streak }) => streak,
      ({ streak }) => streak,
    ),
    figure(
      'Accuracy',
      ({ accuracy }) => accuracy,
      ({ accuracy }) => accuracy,
    ),
    lineChart({
      title: 'Accuracy by slot, newest checkpoints',
      xLabel: 'slot',
      yLabel: 'accuracy',
      lines: newest.map(({ run, step, accuracyBySlot }) => ({
        name: `${run} at ${step}`,
        points: accuracyBySlot.map((y, slot) => ({ x: slot + 1, y })),
      })),
    }),
    ...runs.map((run) => slotsOverSteps(watch, run, runs.length > 1)),
    lineChart({
      title: 'Loss, from the training logs',
      xLabel: 'step',
      yLabel: 'loss',
      lines: loggedLines(watch, runs, ({ loss }) => loss),
    }),
    lineChart({
      title: 'Difference in tokens per round, at equal steps',
      xLabel: 'step',
      yLabel: 'difference',
      level: { y: 0, name: '' },
      yDomain: differenceDomain(watch),
      lines: watch.overlays.map(({ a, b, steps }) => ({
        name: `${b} − ${a}`,
        points: steps.map(({ step, acceptanceLength }) => ({ x: step, y: acceptanceLength })),
      })),
    }),
    '</div>',
    htmlTable(HEADER, rows(watch)),
    ...notes(watch).map((note) => `<p class="muted">${escapeHtml(note)}</p>`),
    ...watch.overlays.map(({ a, b, steps }) =>
      htmlTable(
        ['step', `${b} − ${a}, tokens per round`, 'streak'],
        steps.map(({ step, acceptanceLength, streak }) => [
          String(step),
          formatDifference(acceptanceLength),
          formatDifference(streak),
        ]),
      ),
    ),
  ]);
}

export function watchText(watch: Watch): string {
  const overlays = watch.overlays.map(({ words }) => `• ${words}`);
  return `${[textTable(HEADER, rows(watch)), ...overlays, ...notes(watch)].join('\n\n')}\n`;
}

/** What was left out, and what came of thresholds. */
function notes({ points, gates }: Watch): string[] {
  const newest = points.at(-1);
  const missing = newest === undefined ? null : leftOut({ tooLong: newest.tooLong, count: newest.prompts.length });
  return [
    ...(missing === null ? [] : [missing]),
    ...gates.map(
      ({ run, step, name, threshold, value, passed }) =>
        `${passed ? 'passed' : 'FAILED'}  ${run}${step === null ? '' : ` at step ${step}`}: ${name} ${threshold}: ${formatNumber(value, 3)}`,
    ),
  ];
}

const HEADER = [
  'run',
  'step',
  'tokens per round',
  'streak',
  'accuracy %',
  'slot 1 %',
  'last slot %',
  'logged accuracy %',
  'logged streak',
];

function rows({ points, logged }: Watch): string[][] {
  return points.map(({ run, step, acceptanceLength, streak, accuracy, accuracyBySlot }) => {
    // The log has its own steps, and its lines not all figures: the nearest one that is not later says what was known then.
    const own = (figure: 'accuracy' | 'streak') =>
      logged.findLast((line) => line.run === run && line.step <= step && line[figure] !== null)?.[figure] ?? null;
    return [
      run,
      String(step),
      formatInterval(acceptanceLength),
      formatInterval(streak),
      formatShare(accuracy.value),
      formatShare(accuracyBySlot[0]?.value ?? null),
      formatShare(accuracyBySlot.at(-1)?.value ?? null),
      formatShare(own('accuracy')),
      formatNumber(own('streak'), 2),
    ];
  });
}

function runNames({ points, logged }: Watch): string[] {
  return [...new Set([...points, ...logged].map(({ run }) => run))];
}

function lines(watch: Watch, measured: (point: WatchPoint) => Interval, logged: (point: LoggedPoint) => number | null): Line[] {
  const runs = runNames(watch);
  const own = runs.map((run) => ({
    name: run,
    points: watch.points.filter((point) => point.run === run).map((point) => ({ x: point.step, y: measured(point) })),
  }));
  return [...own, ...loggedLines(watch, runs, logged)];
}

function loggedLines({ logged }: Watch, runs: readonly string[], figure: (point: LoggedPoint) => number | null): Line[] {
  return runs.flatMap((run, colour) => {
    const points = logged.filter((point) => point.run === run && figure(point) !== null);
    if (points.length === 0) return [];
    return [
      {
        name: `${run}, log`,
        dashed: true,
        colour,
        points: points.map((point) => ({ x: point.step, y: { value: figure(point), low: null, high: null } })),
      },
    ];
  });
}

function slotsOverSteps({ points }: Watch, run: string, named: boolean): string {
  const own = points.filter((point) => point.run === run);
  const slots = own[0]?.accuracyBySlot.length ?? 0;
  return lineChart({
    title: `Accuracy by slot over steps${named ? `, ${run}` : ''}`,
    xLabel: 'step',
    yLabel: 'accuracy',
    lines: Array.from({ length: slots }, (_, slot) => ({
      name: `slot ${slot + 1}`,
      points: own.flatMap(({ step, accuracyBySlot }) => {
        const y = accuracyBySlot[slot];
        return y === undefined ? [] : [{ x: step, y }];
      }),
    })),
  });
}

function differenceDomain({ overlays }: Watch): [number, number] {
  const ends = overlays.flatMap(({ steps }) =>
    steps.flatMap(({ acceptanceLength: { low, high, value } }) => [low ?? value ?? 0, high ?? value ?? 0]),
  );
  return [Math.min(0, ...ends) - 0.02, Math.max(0, ...ends) + 0.02];
}
