/** A linear map from values to pixels, with ticks at round values. */
export interface Scale {
  (value: number): number;
  readonly ticks: readonly number[];
}

export interface TickOptions {
  /** About so many. */
  readonly wanted?: number;
  /** For what is counted: ticks at whole numbers only. */
  readonly whole?: boolean;
}

export function linearScale(
  domain: readonly [number, number],
  range: readonly [number, number],
  { wanted = 5, whole = false }: TickOptions = {},
): Scale {
  const [low, high] = domain;
  const span = high - low || 1;
  const scale = (value: number) => range[0] + ((value - low) / span) * (range[1] - range[0]);
  return Object.assign(scale, { ticks: roundTicks(low, high, wanted, whole ? 1 : 0) });
}

/** Multiples of 1, 2 or 5 times a power of ten, and of `least` at least. */
function roundTicks(low: number, high: number, wanted: number, least: number): number[] {
  const raw = (high - low || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power, least);
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) {
    ticks.push(Number(tick.toPrecision(12)));
  }
  return ticks;
}
