import { escapeHtml } from '../escape-html.ts';
import { formatInterval } from '../format-figure.ts';
import type { Interval } from '../interval.ts';
import { CHART, chartFrame, colour, type FrameOptions, fixed } from './chart-frame.ts';
import { linearScale } from './scale.ts';

export interface Line {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: Interval }[];
  readonly dashed?: boolean;
  /** Index of its colour; by default its place. */
  readonly colour?: number;
}

export interface LineChartOptions {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly lines: readonly Line[];
  /** Ends of the y axis; by default from 0 to the largest value. */
  readonly yDomain?: readonly [number, number];
  /** Ends of the x axis; by default those of the points. */
  readonly xDomain?: readonly [number, number];
  /** Draw y = x from 0 to 1, as for calibration. */
  readonly diagonal?: boolean;
  /** Draw a level. */
  readonly level?: { readonly y: number; readonly name: string };
  /** Instead of numbers at the ticks of x. */
  readonly xNames?: NonNullable<FrameOptions['xNames']>;
  /** Ring a point, and say why. */
  readonly notes?: readonly { readonly x: number; readonly y: number; readonly text: string }[];
}

/** Lines with their 95 % intervals as bars; points without a value are left out. */
export function lineChart(options: LineChartOptions): string {
  const { lines, level } = options;
  const all = lines.flatMap(({ points }) => points).filter(({ y }) => y.value !== null);
  if (all.length === 0) return '';
  const xs = all.map(({ x }) => x);
  const tops = [...all.map(({ y }) => y.high ?? y.value ?? 0), ...(level === undefined ? [] : [level.y])];
  const x = linearScale(
    options.xDomain ?? [Math.min(...xs), Math.max(...xs)],
    [CHART.left + 14, CHART.width - CHART.right - 10],
    { wanted: 8, whole: xs.every(Number.isInteger) },
  );
  const y = linearScale(options.yDomain ?? [0, Math.max(...tops) * 1.05], [CHART.height - CHART.bottom, CHART.top]);
  const marks: string[] = [];
  if (options.diagonal === true) {
    marks.push(`<line class="guide" x1="${fixed(x(0))}" y1="${fixed(y(0))}" x2="${fixed(x(1))}" y2="${fixed(y(1))}"/>`);
  }
  if (level !== undefined) {
    const at = fixed(y(level.y));
    marks.push(
      `<line class="guide" x1="${CHART.left}" x2="${CHART.width - CHART.right}" y1="${at}" y2="${at}"/>`,
      `<text class="tick" x="${CHART.width - CHART.right}" y="${fixed(y(level.y) - 4)}" text-anchor="end">${level.name}</text>`,
    );
  }
  for (const [i, line] of lines.entries()) marks.push(...drawn(line, line.colour ?? i, x, y));
  for (const [i, note] of (options.notes ?? []).entries()) {
    const [atX, atY] = [x(note.x), y(note.y)];
    const isRight = atX > CHART.width * 0.7;
    // By turns below and above, for those that are near each other.
    const below = i % 2 === 0 ? 14 : -8;
    marks.push(
      `<circle fill="none" stroke="#333" cx="${fixed(atX)}" cy="${fixed(atY)}" r="6"/>`,
      `<text class="tick" x="${fixed(atX + (isRight ? -9 : 9))}" y="${fixed(atY + below)}" text-anchor="${isRight ? 'end' : 'start'}">${escapeHtml(note.text)}</text>`,
    );
  }
  return chartFrame(
    { ...options, x, y, legend: lines.map(({ name, colour: own, dashed = false }, i) => ({ name, colour: own ?? i, dashed })) },
    marks,
  );
}

function drawn(line: Line, index: number, x: (value: number) => number, y: (value: number) => number): string[] {
  const known = line.points.flatMap(({ x: at, y: figure }) =>
    figure.value === null ? [] : [{ at, ...figure, value: figure.value }],
  );
  const path = known.map(({ at, value }, i) => `${i === 0 ? 'M' : 'L'}${fixed(x(at))} ${fixed(y(value))}`).join('');
  const dash = line.dashed === true ? ' stroke-dasharray="4 3"' : '';
  const bars = known.map(({ at, low, high }) =>
    low === null || high === null
      ? ''
      : `<line class="bar" stroke="${colour(index)}" x1="${fixed(x(at))}" x2="${fixed(x(at))}" y1="${fixed(y(low))}" y2="${fixed(y(high))}"/>`,
  );
  const dots = known.map(
    ({ at, value, low, high }) =>
      `<circle fill="${colour(index)}" cx="${fixed(x(at))}" cy="${fixed(y(value))}" r="2.6">` +
      `<title>${escapeHtml(line.name)}: ${formatInterval({ value, low, high })}</title></circle>`,
  );
  return [`<path class="line" stroke="${colour(index)}"${dash} d="${path}"/>`, ...bars, ...dots];
}
