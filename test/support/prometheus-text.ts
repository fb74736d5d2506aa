/** Samples of a Prometheus text, by series as printed: `name{label="value"}`. */
export type Samples = ReadonlyMap<string, number>;

/** Reads the sample lines; comments are skipped, a line that is neither is an error. */
export function parsePrometheus(text: string): Samples {
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^(\S+?(?:\{.*\})?) (\S+)$/.exec(line);
    if (match === null) throw new Error(`not a Prometheus sample: ${line}`);
    samples.set(match[1]!, Number(match[2]));
  }
  return samples;
}

/** The sum over all series of one name whose labels include the given ones; 0 when there is none. */
export function sumOf(samples: Samples, name: string, labels: Readonly<Record<string, string | number>> = {}): number {
  let sum = 0;
  for (const [series, value] of samples) {
    const [seriesName, rest = ''] = series.split('{', 2);
    const hasLabels = Object.entries(labels).every(([label, wanted]) => `,${rest}`.includes(`,${label}="${wanted}"`));
    if (seriesName === name && hasLabels) sum += value;
  }
  return sum;
}
