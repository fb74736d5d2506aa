import { describe, expect, it } from 'vitest';
import type { MetricDefinition } from '../../../src/load/metrics/metric.ts';
import { MetricStore } from '../../../src/load/metrics/metric-store.ts';

const own: readonly MetricDefinition[] = [{ name: 'length', type: 'trend', contains: 'default' }];

describe('metrics', () => {
  it('are told apart by the tags that thresholds name', () => {
    const store = new MetricStore(own, {
      length: ['avg>0'],
      'length{drafter:a,load:4}': ['avg>2'],
      'length{group:::x}': ['avg>0'],
    });
    store.record({ metric: 'length', value: 1, tags: { drafter: 'a', load: '1' } });
    store.record({ metric: 'length', value: 3, tags: { drafter: 'a', load: '4' } });
    store.record({ metric: 'length', value: 8, tags: { drafter: 'b', load: '4', group: '::x' } });
    const averages = store.metrics().map(({ name, sink }) => [name, sink.aggregate('avg', 1)]);
    expect(averages).toEqual([
      ['length', 4],
      ['length{drafter:a,load:4}', 3],
      ['length{group:::x}', 8],
    ]);
    expect(store.crossed(1)).toEqual([]);
  });

  it('tell which thresholds are crossed, those without samples too', () => {
    const store = new MetricStore(own, { length: ['avg>2', 'max<9'], 'length{drafter:never}': ['med>1.2'] });
    store.record({ metric: 'length', value: 1, tags: {} });
    expect(store.crossed(1).map(({ metric, threshold }) => `${metric.name}: ${threshold.source}`)).toEqual([
      'length: avg>2',
      'length{drafter:never}: med>1.2',
    ]);
  });

  it('end a test by thresholds that say so, once they have samples and the delay is over', () => {
    const store = new MetricStore(own, { length: [{ threshold: 'avg>2', abortOnFail: true, delayAbortEval: '5s' }] });
    expect(store.aborting(10)).toBeNull();
    store.record({ metric: 'length', value: 1, tags: {} });
    expect(store.aborting(4)).toBeNull();
    expect(store.aborting(5)?.threshold.source).toBe('avg>2');
    store.record({ metric: 'length', value: 9, tags: {} });
    expect(store.aborting(6)).toBeNull();
  });

  it.each([{ unknown: ['avg>0'] }, { 'unknown{a:b}': ['avg>0'] }, { 'length{a}': ['avg>0'] }])(
    'refuse thresholds %j',
    (thresholds) => {
      expect(() => new MetricStore(own, thresholds as Record<string, string[]>)).toThrow(
        expect.objectContaining({ code: 'invalid_config', details: { param: 'thresholds' } }),
      );
    },
  );
});
