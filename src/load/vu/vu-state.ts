/** What a virtual user knows of itself: one object, which the modules of the script share. */
import type { MetricDefinition, Sample, Tags } from '../metrics/metric.ts';
import { PendingWork } from './pending-work.ts';
import type { FromVu, ScenarioFacts, VuStart } from './protocol.ts';

export type Phase = 'init' | 'setup' | 'iteration' | 'teardown' | 'summary';

export class VuState {
  readonly start: VuStart;
  readonly pending = new PendingWork();
  readonly metrics = new Map<string, MetricDefinition>();
  /** Elements of each SharedArray, as JSON. */
  readonly shared: Record<string, readonly string[]>;
  phase: Phase = 'init';
  scenario: ScenarioFacts | null = null;
  /** As `__VU`, `__ITER` and `__ENV` are read. */
  readonly vu: number;
  iteration = 0;
  env: Readonly<Record<string, string>>;
  iterationInTest = 0;
  iterationInScenario = 0;
  /** That the script has set for this user. */
  readonly vuTags: Record<string, string> = {};
  /** `::outer::inner`; empty at the root. */
  group = '';
  #samples: Sample[] = [];
  readonly #send: (message: FromVu) => void;

  constructor(start: VuStart, send: (message: FromVu) => void) {
    this.start = start;
    this.vu = start.vu;
    this.env = start.env;
    this.shared = { ...start.shared };
    this.#send = send;
  }

  /** Tags of a sample taken now. */
  tags(own: Tags = {}): Tags {
    return {
      ...this.start.tags,
      ...(this.scenario === null ? {} : { scenario: this.scenario.name, ...this.scenario.tags }),
      group: this.group,
      ...this.vuTags,
      ...own,
    };
  }

  add(metric: string, value: number, own: Tags = {}): void {
    this.#samples.push({ metric, value, tags: this.tags(own) });
  }

  /** Samples leave at once where a user might be interrupted. */
  flush(): void {
    if (this.#samples.length === 0) return;
    this.#send({ type: 'samples', samples: this.#samples });
    this.#samples = [];
  }

  send(message: FromVu): void {
    this.#send(message);
  }
}
