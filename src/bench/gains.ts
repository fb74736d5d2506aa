/** What speculation gains, where it stops to pay, and where a server is loaded best. */
import { Bootstrap, type Interval } from '../validate/report/interval.ts';
import { byPrompt } from './point-figures.ts';
import type { RequestRecord } from './request-record.ts';
import type { PointFigures } from './result-schema.ts';

/**
 * Time for a token of plain decoding over that of speculation, for the same prompts at the same load. With a fixed number of
 * clients it is the ratio of throughputs too.
 */
export function speculationGain(plain: readonly RequestRecord[], speculating: readonly RequestRecord[]): Interval {
  const plainByPrompt = byPrompt(plain.filter(({ error }) => error === null));
  const pairs = [...byPrompt(speculating.filter(({ error }) => error === null))].flatMap(([prompt, own]) => {
    const other = plainByPrompt.get(prompt);
    return other === undefined ? [] : [{ own: cost(own), plain: cost(other) }];
  });
  return new Bootstrap(pairs.length).interval((counts) => {
    const total = { own: { ms: 0, tokens: 0 }, plain: { ms: 0, tokens: 0 } };
    for (const [i, pair] of pairs.entries()) {
      for (const side of ['own', 'plain'] as const) {
        total[side].ms += counts[i]! * pair[side].ms;
        total[side].tokens += counts[i]! * pair[side].tokens;
      }
    }
    const { own, plain: other } = total;
    if (own.ms === 0 || own.tokens === 0 || other.tokens === 0) return null;
    return other.ms / other.tokens / (own.ms / own.tokens);
  });
}

function cost(records: readonly RequestRecord[]): { readonly ms: number; readonly tokens: number } {
  return {
    ms: records.reduce((sum, { e2el }) => sum + e2el, 0),
    tokens: records.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
  };
}

export interface LoadGain {
  readonly concurrency: number;
  readonly gain: Interval;
}

/**
 * The load beyond which the gain stays at 1 or below, between two that were measured by a straight line over the logarithm of
 * the load.
 * @returns null when it pays at the highest load; the lowest load when it never pays
 */
export function breakEven(gains: readonly LoadGain[]): number | null {
  const known = gains.flatMap(({ concurrency, gain: { value } }) => (value === null ? [] : [{ concurrency, value }]));
  const last = known.findLastIndex(({ value }) => value > 1);
  const above = known[last];
  const below = known[last + 1];
  if (below === undefined) return null;
  if (above === undefined) return below.concurrency;
  const share = (above.value - 1) / (above.value - below.value);
  return above.concurrency * (below.concurrency / above.concurrency) ** share;
}

/**
 * The load with the most throughput for the time that an answer takes (Kleinrock's power): below it the server idles, beyond it
 * answers only wait longer.
 */
export function knee(points: readonly PointFigures[]): number | null {
  const powers = points.flatMap(({ max_concurrency, output_throughput, times }) => {
    const latency = times['mean_e2el_ms'];
    return latency == null ? [] : [{ max_concurrency, power: output_throughput / latency }];
  });
  const best = Math.max(...powers.map(({ power }) => power));
  return powers.find(({ power }) => power === best)?.max_concurrency ?? null;
}
