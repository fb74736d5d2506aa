/** `name{tag:value, …}`: the samples of a metric that carry these tags. */
import { AppError } from '../../core/app-error.ts';
import type { Tags } from './metric.ts';

export interface SubMetricName {
  readonly parent: string;
  readonly tags: Tags;
}

/** @returns null for a name without tags */
export function parseSubMetric(name: string): SubMetricName | null {
  const [, parent, inside] = /^([^{]+)\{(.*)\}$/.exec(name) ?? [];
  if (parent === undefined || inside === undefined) return null;
  const pairs = inside.split(',').map((pair): [string, string] => {
    const colon = pair.indexOf(':');
    const tag = pair.slice(0, colon).trim();
    if (colon < 1 || tag === '') {
      throw new AppError('invalid_config', `Expected tag:value inside the braces of ${name}, got ${JSON.stringify(pair)}`, {
        details: { param: 'thresholds' },
      });
    }
    return [
      tag,
      pair
        .slice(colon + 1)
        .trim()
        .replace(/^["'](.*)["']$/, '$1'),
    ];
  });
  return { parent: parent.trim(), tags: Object.fromEntries(pairs) };
}

export function hasTags(tags: Tags, wanted: Tags): boolean {
  return Object.entries(wanted).every(([name, value]) => tags[name] === value);
}
