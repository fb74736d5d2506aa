/** Where the samples of a metric are gathered, by its type. A figure of no samples is 0. */
import type { MetricType } from './metric.ts';
import { percentile } from './percentile.ts';

export interface Sink {
  /** Samples so far. */
  readonly count: number;
  add(value: number): void;
  /**
   * @param aggregation as thresholds and summaries name it: `avg`, `p(95)`, `rate`, …
   * @param seconds how long the test has run
   * @returns null where this type of metric has no such figure
   */
  aggregate(aggregation: string, seconds: number): number | null;
  /** The figures of a summary, under their names. */
  values(trendStats: readonly string[], seconds: number): Record<string, number>;
}

class CounterSink implements Sink {
  count = 0;
  #sum = 0;

  add(value: number): void {
    this.count += 1;
    this.#sum += value;
  }

  aggregate(aggregation: string, seconds: number): number | null {
    if (aggregation === 'count') return this.#sum;
    return aggregation === 'rate' ? this.#sum / Math.max(seconds, 1e-9) : null;
  }

  values(_trendStats: readonly string[], seconds: number) {
    return { count: this.#sum, rate: this.#sum / Math.max(seconds, 1e-9) };
  }
}

class GaugeSink implements Sink {
  count = 0;
  #value = 0;
  #min = 0;
  #max = 0;

  add(value: number): void {
    this.#min = this.count === 0 ? value : Math.min(this.#min, value);
    this.#max = this.count === 0 ? value : Math.max(this.#max, value);
    this.#value = value;
    this.count += 1;
  }

  aggregate(aggregation: string): number | null {
    return aggregation === 'value' ? this.#value : null;
  }

  values() {
    return { value: this.#value, min: this.#min, max: this.#max };
  }
}

class RateSink implements Sink {
  count = 0;
  #passes = 0;

  add(value: number): void {
    this.count += 1;
    if (value !== 0) this.#passes += 1;
  }

  aggregate(aggregation: string): number | null {
    return aggregation === 'rate' ? this.#rate() : null;
  }

  values() {
    return { rate: this.#rate(), passes: this.#passes, fails: this.count - this.#passes };
  }

  #rate(): number {
    return this.count === 0 ? 0 : this.#passes / this.count;
  }
}

const PERCENTILE = /^p\(\s*(\d+(?:\.\d+)?)\s*\)$/;

class TrendSink implements Sink {
  readonly #values: number[] = [];
  #isSorted = true;
  #sum = 0;

  get count(): number {
    return this.#values.length;
  }

  add(value: number): void {
    this.#values.push(value);
    this.#sum += value;
    this.#isSorted = false;
  }

  aggregate(aggregation: string): number | null {
    const percent = PERCENTILE.exec(aggregation)?.[1];
    if (percent !== undefined) return Number(percent) > 100 ? null : percentile(this.#sorted(), Number(percent));
    switch (aggregation) {
      case 'avg':
        return this.count === 0 ? 0 : this.#sum / this.count;
      case 'min':
        return percentile(this.#sorted(), 0);
      case 'max':
        return percentile(this.#sorted(), 100);
      case 'med':
        return percentile(this.#sorted(), 50);
      case 'count':
        return this.count;
      default:
        return null;
    }
  }

  values(trendStats: readonly string[]) {
    return Object.fromEntries(trendStats.map((stat) => [stat, this.aggregate(stat) ?? 0]));
  }

  #sorted(): readonly number[] {
    if (!this.#isSorted) this.#values.sort((a, b) => a - b);
    this.#isSorted = true;
    return this.#values;
  }
}

export function createSink(type: MetricType): Sink {
  switch (type) {
    case 'counter':
      return new CounterSink();
    case 'gauge':
      return new GaugeSink();
    case 'rate':
      return new RateSink();
    case 'trend':
      return new TrendSink();
  }
}
