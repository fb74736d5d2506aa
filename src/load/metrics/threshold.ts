/** `<aggregation> <operator> <value>`, such as `p(95)<200`, as a condition of passing. */
import { AppError } from '../../core/app-error.ts';
import { parseDuration } from '../duration.ts';
import type { MetricType } from './metric.ts';
import { createSink, type Sink } from './sink.ts';

const OPERATORS: Readonly<Record<string, (left: number, right: number) => boolean>> = {
  '<': (left, right) => left < right,
  '<=': (left, right) => left <= right,
  '>': (left, right) => left > right,
  '>=': (left, right) => left >= right,
  '==': (left, right) => left === right,
  '===': (left, right) => left === right,
  '!=': (left, right) => left !== right,
};
const EXPRESSION = /^\s*([a-z]+(?:\(\s*[\d.]+\s*\))?)\s*(<=|>=|===|==|!=|<|>)\s*(-?\d+(?:\.\d+)?)\s*$/;

export type ThresholdSource =
  | string
  | { readonly threshold: string; readonly abortOnFail?: boolean; readonly delayAbortEval?: string | number };

export interface Threshold {
  /** As written. */
  readonly source: string;
  readonly aggregation: string;
  /** Ends the test as soon as it is crossed. */
  readonly abortOnFail: boolean;
  /** Not before the test has run that long, in milliseconds. */
  readonly delayAbortMs: number;
  /** @param seconds how long the test has run */
  holds(sink: Sink, seconds: number): boolean;
}

/** @throws AppError `invalid_config` for what is no threshold, or none of this type of metric */
export function parseThreshold(given: ThresholdSource, metric: string, type: MetricType): Threshold {
  const { threshold, abortOnFail = false, delayAbortEval = 0 } = typeof given === 'string' ? { threshold: given } : given;
  const [, aggregation = '', operator = '', limit] = EXPRESSION.exec(threshold) ?? [];
  const compare = OPERATORS[operator];
  if (compare === undefined) throw notUsable(threshold, metric, 'an expression such as p(95)<200 or rate>0.9');
  if (createSink(type).aggregate(aggregation, 1) === null) {
    throw notUsable(threshold, metric, `an aggregation of a ${type} (${AGGREGATIONS[type]})`);
  }
  return {
    source: threshold,
    aggregation,
    abortOnFail,
    delayAbortMs: parseDuration(delayAbortEval, `delayAbortEval of ${metric}`),
    holds: (sink, seconds) => compare(sink.aggregate(aggregation, seconds) ?? Number.NaN, Number(limit)),
  };
}

const AGGREGATIONS: Readonly<Record<MetricType, string>> = {
  counter: 'count, rate',
  gauge: 'value',
  rate: 'rate',
  trend: 'avg, min, max, med, p(N)',
};

function notUsable(threshold: string, metric: string, expected: string): AppError {
  return new AppError('invalid_config', `Expected ${expected} as threshold of ${metric}, got ${JSON.stringify(threshold)}`, {
    details: { param: 'thresholds' },
  });
}
