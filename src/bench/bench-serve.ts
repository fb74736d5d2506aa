/** Measures a server over variants and loads, in turns. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { DiagnosisPrompt } from '../validate/recording/prompt.ts';
import { hostProvenance } from '../validate/report/provenance.ts';
import { type Axes, type BenchPoint, benchPoints, benchVariants, PLAIN, pointKey, type Variant } from './bench-point.ts';
import { closedLoop } from './closed-loop.ts';
import { breakEven, knee, speculationGain } from './gains.ts';
import { acceptance, type Goals, type PointRecords, pointFigures } from './point-figures.ts';
import type { RequestRecord } from './request-record.ts';
import { type BenchResult, benchResultSchema } from './result-schema.ts';
import type { ServerClient, ServerFacts } from './server-client.ts';

export interface BenchServeOptions extends Axes {
  readonly client: ServerClient;
  /** Null: the server's first one. */
  readonly model: string | null;
  readonly prompts: readonly DiagnosisPrompt[];
  readonly promptsFile: string;
  readonly drafters: readonly string[] | null;
  readonly draftTokens: readonly number[];
  readonly outputLength: number;
  readonly ignoreEos: boolean;
  readonly seed: number;
  readonly repeats: number;
  readonly percentiles: readonly number[];
  readonly goals: Goals;
  /** Ends the measuring; what was done by then is reported. */
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, total: number) => void;
}

/** Of each repeat, a point that was interrupted is left out. */
type Measured = Map<string, PointRecords>;

export async function benchServe(options: BenchServeOptions): Promise<BenchResult> {
  const server = await options.client.facts(options.model);
  const variants = benchVariants(server, options.drafters, options.draftTokens);
  const points = benchPoints(variants, fitting(options, server));
  const measured: Measured = new Map();
  let complete = true;
  try {
    await measure(options, server, points, measured);
  } catch (error) {
    if (!options.signal.aborted) throw error;
    complete = false;
  }
  return result(options, server, variants, [...measured.values()], complete);
}

/** Contexts that leave no room for an answer are not asked for. */
function fitting({ contextLengths, outputLength, ...axes }: BenchServeOptions, { max_model_len: longest }: ServerFacts): Axes {
  const QUESTION = 128;
  const fits = (length: number) => longest === null || length + QUESTION + outputLength <= longest;
  return { ...axes, contextLengths: contextLengths.filter((length) => length === 0 || fits(length)) };
}

async function measure(
  options: BenchServeOptions,
  server: ServerFacts,
  points: readonly BenchPoint[],
  measured: Measured,
): Promise<void> {
  const { client, prompts, signal, repeats } = options;
  const total = points.length * prompts.length * repeats;
  let done = 0;
  const loop = (point: BenchPoint, asked: readonly DiagnosisPrompt[], salt: string, onAnswer: () => void) =>
    closedLoop({
      client,
      model: server.model,
      prompts: asked,
      point,
      outputLength: options.outputLength,
      ignoreEos: options.ignoreEos,
      seed: options.seed,
      cacheSalt: server.drafters === null ? null : salt,
      continuousUsage: server.drafters !== null,
      signal,
      onAnswer,
    });
  options.onProgress(0, total);
  // The first answers of a server prepare what later ones find ready.
  for (const point of points.filter(({ axis }) => axis === 'load')) {
    await loop(point, prompts.slice(0, point.concurrency), `warm-up-${pointKey(point)}`, () => undefined);
  }
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const group of groups(points)) {
      // By turns, and back: a machine that becomes slower or faster favours nobody.
      for (const point of repeat % 2 === 0 ? group : group.toReversed()) {
        const key = pointKey(point);
        const { records, durationMs } = await loop(point, prompts, `${repeat}-${key}`, () => options.onProgress(++done, total));
        const before = measured.get(key);
        measured.set(key, {
          point,
          records: [...(before?.records ?? []), ...records],
          durationMs: (before?.durationMs ?? 0) + durationMs,
        });
      }
    }
  }
}

/** Points that differ in the variant only. */
function groups(points: readonly BenchPoint[]): readonly (readonly BenchPoint[])[] {
  const found = new Map<string, BenchPoint[]>();
  for (const point of points) {
    const key = pointKey({ ...point, variant: { name: '', drafter: null, draftTokens: null } });
    found.set(key, [...(found.get(key) ?? []), point]);
  }
  return [...found.values()];
}

function result(
  options: BenchServeOptions,
  server: ServerFacts,
  variants: readonly Variant[],
  measured: readonly PointRecords[],
  complete: boolean,
): BenchResult {
  const figures = measured.map((records) => pointFigures(records, options.percentiles, options.goals));
  const load = measured.filter(({ point }) => point.axis === 'load');
  const recordsOf = (variant: string, concurrency: number) =>
    load.find(({ point }) => point.variant.name === variant && point.concurrency === concurrency)?.records;
  const drafting = variants.filter(({ name }) => name !== PLAIN);
  const gains = drafting.flatMap(({ name }) =>
    options.concurrency.flatMap((concurrency) => {
      const own = recordsOf(name, concurrency);
      const plain = recordsOf(PLAIN, concurrency);
      if (own === undefined || plain === undefined) return [];
      return [{ variant: name, max_concurrency: concurrency, gain: speculationGain(plain, own) }];
    }),
  );
  const quiet = options.concurrency[0] ?? 1;
  const knees = variants.flatMap(({ name }) => {
    const at = knee(figures.filter(({ axis, variant }) => axis === 'load' && variant === name));
    return at === null ? [] : [[name, at] as const];
  });
  return benchResultSchema.parse({
    format: 'blockdraft-bench-serve',
    format_version: 1,
    complete,
    provenance: hostProvenance(),
    server: { ...server, drafters: server.drafters === null ? null : [...server.drafters] },
    settings: {
      dataset: basename(options.promptsFile),
      dataset_sha256: createHash('sha256').update(readFileSync(options.promptsFile)).digest('hex'),
      num_prompts: options.prompts.length,
      output_len: options.outputLength,
      ignore_eos: options.ignoreEos,
      seed: options.seed,
      repeats: options.repeats,
      goodput: options.goals,
      metric_percentiles: [...options.percentiles],
    },
    points: figures,
    gains,
    by_category: drafting.flatMap(({ name }) => byCategory(name, recordsOf(name, quiet) ?? [], recordsOf(PLAIN, quiet) ?? [])),
    knees: Object.fromEntries(knees),
    break_even: Object.fromEntries(
      drafting.flatMap(({ name }) => {
        const own = gains.filter(({ variant }) => variant === name);
        return own.length === 0
          ? []
          : [[name, breakEven(own.map(({ max_concurrency: concurrency, gain }) => ({ concurrency, gain })))]];
      }),
    ),
    lossless: lossless(load),
    errors: [...new Set(measured.flatMap(({ records }) => records.flatMap(({ error }) => error ?? [])))],
  } satisfies BenchResult);
}

function byCategory(
  variant: string,
  own: readonly RequestRecord[],
  plain: readonly RequestRecord[],
): BenchResult['by_category'] {
  return [...new Set(own.map(({ category }) => category))].map((category) => {
    const inCategory = (records: readonly RequestRecord[]) => records.filter((record) => record.category === category);
    return {
      variant,
      category,
      requests: inCategory(own).length,
      spec_decode_acceptance_length: acceptance(inCategory(own)).acceptanceLength,
      gain: speculationGain(inCategory(plain), inCategory(own)),
    };
  });
}

/** Every answer to a prompt at the same temperature and seed should be that of plain decoding, whatever the load. */
function lossless(load: readonly PointRecords[]): BenchResult['lossless'] {
  const plain = new Map<string, string>();
  for (const { point, records } of load) {
    if (point.variant.name !== PLAIN) continue;
    for (const { prompt, text, error } of records) if (error === null && !plain.has(prompt)) plain.set(prompt, text);
  }
  let compared = 0;
  const differing: { prompt: string; variant: string }[] = [];
  for (const { point, records } of load) {
    if (point.variant.name === PLAIN) continue;
    for (const { prompt, text, error } of records) {
      const expected = plain.get(prompt);
      if (error !== null || expected === undefined) continue;
      compared += 1;
      if (text !== expected) differing.push({ prompt, variant: `${point.variant.name} at ${point.concurrency}` });
    }
  }
  return { compared, differing };
}
