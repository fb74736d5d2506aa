/** What all charts have in common: size, axes, labels, legend. */
import { escapeHtml } from '../escape-html.ts';
import type { Scale } from './scale.ts';

export const CHART = { width: 460, height: 260, left: 48, right: 14, top: 14, bottom: 40 } as const;
/** Distinct for most eyes, with and without colour vision (Okabe and Ito 2008). */
export const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#555555'] as const;

export function colour(index: number): string {
  return COLOURS[index % COLOURS.length] as string;
}

export interface LegendEntry {
  readonly name: string;
  /** Index of its colour. */
  readonly colour: number;
  readonly dashed: boolean;
}

export interface FrameOptions {
  readonly x: Scale;
  readonly y: Scale;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Instead of numbers at the ticks of x. */
  readonly xNames?: readonly { readonly at: number; readonly name: string }[];
  readonly formatY?: (value: number) => string;
  readonly legend: readonly LegendEntry[];
  readonly title: string;
}

/** @param marks what is drawn between the axes */
export function chartFrame(options: FrameOptions, marks: readonly string[]): string {
  const { width, height, left, right, top, bottom } = CHART;
  const { x, y, formatY = String } = options;
  const floor = height - bottom;
  const grid = y.ticks.map(
    (tick) =>
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${fixed(y(tick))}" y2="${fixed(y(tick))}"/>` +
      `<text class="tick" x="${left - 6}" y="${fixed(y(tick) + 3.5)}" text-anchor="end">${escapeHtml(formatY(tick))}</text>`,
  );
  const names = options.xNames ?? x.ticks.map((tick) => ({ at: tick, name: String(tick) }));
  const xTicks = names.map(
    ({ at, name }) =>
      `<text class="tick" x="${fixed(x(at))}" y="${floor + 15}" text-anchor="middle">${escapeHtml(name)}</text>`,
  );
  const legend = options.legend.length < 2 ? '' : `<div class="legend">${options.legend.map(legendEntry).join('')}</div>`;
  const middle = (top + floor) / 2;
  return [
    `<figure><figcaption>${escapeHtml(options.title)}</figcaption>`,
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(options.title)}">`,
    ...grid,
    `<line class="axis" x1="${left}" x2="${width - right}" y1="${floor}" y2="${floor}"/>`,
    ...xTicks,
    `<text class="label" x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">${escapeHtml(options.xLabel)}</text>`,
    `<text class="label" transform="translate(12 ${middle}) rotate(-90)" text-anchor="middle">${escapeHtml(options.yLabel)}</text>`,
    ...marks,
    '</svg>',
    legend,
    '</figure>',
  ].join('');
}

function legendEntry({ name, colour: index, dashed }: LegendEntry): string {
  const own = colour(index);
  const look = dashed ? `repeating-linear-gradient(90deg, ${own} 0 3px, transparent 3px 5px)` : own;
  return `<span><i style="background:${look}"></i>${escapeHtml(name)}</span>`;
}

export function fixed(value: number): string {
  return value.toFixed(1);
}
