/** A linear map from values to pixels, with ticks at round values. */
export interface Scale {
  (value: number): number;
  readonly ticks: readonly number[];
}

export function linearScale(domain: readonly [number, number], range: readonly [number, number], wantedTicks = 5): Scale {
  const [low, high] = domain;
  const span = high - low || 1;
  const scale = (value: number) => range[0] + ((value - low) / span) * (range[1] - range[0]);
  return Object.assign(scale, { ticks: roundTicks(low, high, wantedTicks) });
}

/** Multiples of 1, 2 or 5 times a power of ten. */
function roundTicks(low: number, high: number, wanted: number): number[] {
  const raw = (high - low || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) {
    ticks.push(Number(tick.toPrecision(12)));
  }
  return ticks;
}
