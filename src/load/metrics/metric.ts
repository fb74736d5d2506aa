/** What a metric is, and what is added to one. */
export type MetricType = 'counter' | 'gauge' | 'rate' | 'trend';
/** `time` is in milliseconds, `data` in bytes. */
export type MetricContents = 'default' | 'time' | 'data';
export type Tags = Readonly<Record<string, string>>;

export interface MetricDefinition {
  readonly name: string;
  readonly type: MetricType;
  readonly contains: MetricContents;
}

export interface Sample {
  readonly metric: string;
  readonly value: number;
  readonly tags: Tags;
}
