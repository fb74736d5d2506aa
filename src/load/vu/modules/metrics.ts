/** `k6/metrics`. */
import { BUILT_IN_METRICS } from '../../metrics/built-in.ts';
import type { MetricType } from '../../metrics/metric.ts';
import { requirePhase } from '../require-phase.ts';
import type { VuState } from '../vu-state.ts';

export function metricsModule(state: VuState) {
  const kind = (type: MetricType) =>
    class {
      readonly name: string;

      constructor(name: string, isTime = false) {
        requirePhase(state, `new ${type} "${name}"`, ['init']);
        if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) {
          throw new Error(`Expected a metric name of letters, digits and underscores, got ${JSON.stringify(name)}`);
        }
        const contains = isTime ? 'time' : 'default';
        const known = state.metrics.get(name) ?? BUILT_IN_METRICS.find((metric) => metric.name === name);
        if (known !== undefined && (known.type !== type || known.contains !== contains)) {
          throw new Error(`Expected one definition of metric ${name}, got a ${known.type} and a ${type}`);
        }
        state.metrics.set(name, { name, type, contains });
        this.name = name;
      }

      add(value: number | boolean, tags: Readonly<Record<string, string>> = {}): void {
        requirePhase(state, `a sample of ${this.name}`, ['setup', 'iteration', 'teardown']);
        const number = Number(value);
        if (Number.isNaN(number)) throw new Error(`Expected a number as sample of ${this.name}, got ${String(value)}`);
        const named = Object.entries(tags).map(([tag, text]): [string, string] => [tag, String(text)]);
        state.add(this.name, number, Object.fromEntries(named));
      }
    };
  return { Counter: kind('counter'), Gauge: kind('gauge'), Rate: kind('rate'), Trend: kind('trend') };
}
