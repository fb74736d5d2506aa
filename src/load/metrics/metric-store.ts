/** All metrics of a test, with what was added to them and what is asked of them. */
import { AppError } from '../../core/app-error.ts';
import { BUILT_IN_METRICS, BUILT_IN_SUB_METRICS } from './built-in.ts';
import type { MetricDefinition, Sample, Tags } from './metric.ts';
import { createSink, type Sink } from './sink.ts';
import { hasTags, parseSubMetric } from './sub-metric.ts';
import { parseThreshold, type Threshold, type ThresholdSource } from './threshold.ts';

export interface Metric {
  /** With its tags, for a sub-metric. */
  readonly name: string;
  readonly definition: MetricDefinition;
  /** Samples that count; null for all. */
  readonly tags: Tags | null;
  readonly sink: Sink;
  readonly thresholds: readonly Threshold[];
}

export interface CrossedThreshold {
  readonly metric: Metric;
  readonly threshold: Threshold;
}

export class MetricStore {
  readonly #metrics = new Map<string, Metric>();
  /** Sub-metrics by the name of their parent. */
  readonly #parts = new Map<string, Metric[]>();

  /**
   * @param own metrics that the script defines
   * @param thresholds by name, of metrics and sub-metrics
   */
  constructor(own: readonly MetricDefinition[], thresholds: Readonly<Record<string, readonly ThresholdSource[]>>) {
    const definitions = new Map([...BUILT_IN_METRICS, ...own].map((definition) => [definition.name, definition]));
    for (const definition of definitions.values()) this.#add(definition.name, definition, null, thresholds);
    for (const name of new Set([...BUILT_IN_SUB_METRICS, ...Object.keys(thresholds)])) {
      const part = parseSubMetric(name);
      const definition = definitions.get(part?.parent ?? name);
      if (definition === undefined) {
        throw new AppError('invalid_config', `Expected thresholds of metrics that the script defines, got one of ${name}`, {
          details: { param: 'thresholds' },
        });
      }
      if (part !== null) this.#add(name, definition, part.tags, thresholds);
    }
  }

  #add(
    name: string,
    definition: MetricDefinition,
    tags: Tags | null,
    thresholds: Readonly<Record<string, readonly ThresholdSource[]>>,
  ): void {
    const parsed = (thresholds[name] ?? []).map((given) => parseThreshold(given, name, definition.type));
    const metric: Metric = { name, definition, tags, sink: createSink(definition.type), thresholds: parsed };
    this.#metrics.set(name, metric);
    if (tags !== null) this.#parts.set(definition.name, [...(this.#parts.get(definition.name) ?? []), metric]);
  }

  record({ metric, value, tags }: Sample): void {
    const found = this.#metrics.get(metric);
    if (found === undefined) throw new AppError('internal', `Expected samples of a known metric, got ${metric}`);
    found.sink.add(value);
    for (const part of this.#parts.get(metric) ?? []) {
      if (part.tags !== null && hasTags(tags, part.tags)) part.sink.add(value);
    }
  }

  /** Those with samples, and those with thresholds. */
  metrics(): readonly Metric[] {
    return [...this.#metrics.values()].filter(({ sink, thresholds }) => sink.count > 0 || thresholds.length > 0);
  }

  get(name: string): Metric | undefined {
    return this.#metrics.get(name);
  }

  /** Metrics without samples count as 0: a floor that nothing was measured for is not reached. */
  crossed(seconds: number): readonly CrossedThreshold[] {
    return [...this.#metrics.values()].flatMap((metric) =>
      metric.thresholds
        .filter((threshold) => !threshold.holds(metric.sink, seconds))
        .map((threshold) => ({ metric, threshold })),
    );
  }

  /** What ends the test now. Metrics without samples are left for the end. */
  aborting(seconds: number): CrossedThreshold | null {
    const crossed = this.crossed(seconds).find(
      ({ metric, threshold }) => threshold.abortOnFail && metric.sink.count > 0 && seconds * 1000 >= threshold.delayAbortMs,
    );
    return crossed ?? null;
  }
}
