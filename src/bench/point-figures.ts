/** The figures of one point, from its requests. */
import { Bootstrap, type Interval, quantile } from '../validate/report/interval.ts';
import type { BenchPoint } from './bench-point.ts';
import type { RequestRecord, SpeculationCounts } from './request-record.ts';
import type { PointFigures } from './result-schema.ts';

/** What is measured of a point, over all repeats. */
export interface PointRecords {
  readonly point: BenchPoint;
  readonly records: readonly RequestRecord[];
  /** Milliseconds. */
  readonly durationMs: number;
}

/** Milliseconds that a good answer may take, by `ttft`, `tpot`, `e2el`. */
export type Goals = Readonly<Record<string, number>>;

export function pointFigures(
  { point, records, durationMs }: PointRecords,
  percentiles: readonly number[],
  goals: Goals,
): PointFigures {
  const answered = records.filter(({ error }) => error === null);
  const seconds = durationMs / 1000;
  const input = sum(answered, ({ inputTokens }) => inputTokens);
  const output = sum(answered, ({ outputTokens }) => outputTokens);
  const speculations = answered.flatMap(({ speculation }) => (speculation === null ? [] : [speculation]));
  const { acceptanceLength, acceptanceRate } = acceptance(answered);
  return {
    axis: point.axis,
    variant: point.variant.name,
    drafter: point.variant.drafter,
    draft_tokens: point.variant.draftTokens,
    max_concurrency: point.concurrency,
    temperature: point.temperature,
    context_len: point.contextLength,
    completed: answered.length,
    failed: records.length - answered.length,
    duration: seconds,
    total_input_tokens: input,
    total_output_tokens: output,
    request_throughput: answered.length / seconds,
    output_throughput: output / seconds,
    total_token_throughput: (input + output) / seconds,
    request_goodput:
      Object.keys(goals).length === 0 ? null : answered.filter((record) => meets(record, goals)).length / seconds,
    times: Object.assign(
      {},
      timesOf(
        'ttft',
        answered.map(({ ttft }) => ttft),
        percentiles,
      ),
      timesOf(
        'tpot',
        answered.flatMap(({ tpot }) => tpot ?? []),
        percentiles,
      ),
      timesOf(
        'itl',
        answered.flatMap(({ itl }) => itl),
        percentiles,
      ),
      timesOf(
        'itl_per_token',
        answered.flatMap(({ itlPerToken }) => itlPerToken),
        percentiles,
      ),
      timesOf(
        'e2el',
        answered.map(({ e2el }) => e2el),
        percentiles,
      ),
    ),
    mean_input_tokens: answered.length === 0 ? 0 : input / answered.length,
    spec_decode_acceptance_length: acceptanceLength,
    spec_decode_acceptance_rate: acceptanceRate,
    spec_decode_num_drafts: sum(speculations, ({ drafts }) => drafts),
    spec_decode_draft_tokens: sum(speculations, ({ draftTokens }) => draftTokens),
    spec_decode_accepted_tokens: sum(speculations, ({ acceptedTokens }) => acceptedTokens),
    spec_decode_per_position_acceptance_rates: perPosition(speculations),
  };
}

/** Pooled over requests; rounds of one prompt are alike, so prompts are what is drawn again. */
export function acceptance(records: readonly RequestRecord[]): {
  readonly acceptanceLength: Interval;
  readonly acceptanceRate: Interval;
} {
  const clusters = [...byPrompt(records).values()];
  const bootstrap = new Bootstrap(clusters.length);
  const of = (count: (counts: SpeculationCounts) => number) =>
    clusters.map((own) => sum(own, ({ speculation }) => (speculation === null ? 0 : count(speculation))));
  const drafts = of((counts) => counts.drafts);
  const drafted = of((counts) => counts.draftTokens);
  const accepted = of((counts) => counts.acceptedTokens);
  const ratio = (dividends: readonly number[], divisors: readonly number[]) =>
    bootstrap.ratio(dividends.map((dividend, i) => ({ dividend, divisor: divisors[i]! })));
  return {
    acceptanceLength: ratio(
      accepted.map((count, i) => count + drafts[i]!),
      drafts,
    ),
    acceptanceRate: ratio(accepted, drafted),
  };
}

export function byPrompt(records: readonly RequestRecord[]): ReadonlyMap<string, readonly RequestRecord[]> {
  const groups = new Map<string, RequestRecord[]>();
  for (const record of records) groups.set(record.prompt, [...(groups.get(record.prompt) ?? []), record]);
  return groups;
}

function perPosition(speculations: readonly SpeculationCounts[]): (number | null)[] {
  const longest = Math.max(0, ...speculations.map(({ proposedPerPosition }) => proposedPerPosition.length));
  return Array.from({ length: longest }, (_, place) => {
    const proposed = sum(speculations, ({ proposedPerPosition }) => proposedPerPosition[place] ?? 0);
    return proposed === 0 ? null : sum(speculations, ({ acceptedPerPosition }) => acceptedPerPosition[place] ?? 0) / proposed;
  });
}

function timesOf(name: string, values: readonly number[], percentiles: readonly number[]): Record<string, number | null> {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    [`mean_${name}_ms`]: sorted.length === 0 ? null : sum(sorted, (value) => value) / sorted.length,
    [`median_${name}_ms`]: quantile(sorted, 0.5),
    ...Object.fromEntries(percentiles.map((percent) => [`p${percent}_${name}_ms`, quantile(sorted, percent / 100)])),
  };
}

function meets({ ttft, tpot, e2el }: RequestRecord, goals: Goals): boolean {
  const {
    ttft: ttftGoal = Number.POSITIVE_INFINITY,
    tpot: tpotGoal = Number.POSITIVE_INFINITY,
    e2el: e2elGoal = Number.POSITIVE_INFINITY,
  } = goals;
  return ttft <= ttftGoal && (tpot ?? 0) <= tpotGoal && e2el <= e2elGoal;
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
