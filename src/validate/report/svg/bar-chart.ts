import type { Interval } from '../interval.ts';
import { CHART, chartFrame, colour, fixed } from './chart-frame.ts';
import { linearScale } from './scale.ts';

export interface BarChartOptions {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly bars: readonly { readonly name: string; readonly y: Interval }[];
  /** Values below are cut off. */
  readonly from?: number;
}

/** Bars with 95 % intervals; one without a value is left out. */
export function barChart(options: BarChartOptions): string {
  const { bars, from = 0 } = options;
  const known = bars.filter(({ y }) => y.value !== null);
  if (known.length === 0) return '';
  const largest = Math.max(...known.map(({ y }) => y.high ?? y.value ?? 0));
  const x = linearScale([-0.5, known.length - 0.5], [CHART.left, CHART.width - CHART.right]);
  const y = linearScale([from, largest * 1.05], [CHART.height - CHART.bottom, CHART.top]);
  const width = Math.min(((CHART.width - CHART.left - CHART.right) / known.length) * 0.7, 46);
  const marks = known.flatMap(({ name, y: { value, low, high } }, i) => {
    const top = y(Math.max(value ?? from, from));
    const centre = fixed(x(i));
    return [
      `<rect fill="${colour(0)}" fill-opacity="0.75" x="${fixed(x(i) - width / 2)}" width="${fixed(width)}" y="${fixed(top)}" height="${fixed(y(from) - top)}">` +
        `<title>${name.replaceAll(/[<&]/g, '')}: ${(value ?? 0).toFixed(3)}</title></rect>`,
      low === null || high === null
        ? ''
        : `<line class="bar" stroke="#333" x1="${centre}" x2="${centre}" y1="${fixed(y(Math.max(low, from)))}" y2="${fixed(y(high))}"/>`,
    ];
  });
  return chartFrame({ ...options, x, y, xNames: known.map(({ name }, at) => ({ at, name })), legend: [] }, marks);
}
