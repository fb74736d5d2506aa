/** As many closed loops as the stages say at each moment. */
import type { ScenarioOf } from '../options.ts';
import type { Execute, ScenarioHost, ScenarioVu } from './executor.ts';
import { wait } from './wait.ts';

const LOOK_MS = 50;

interface Stage {
  readonly duration: number;
  readonly target: number;
}

export function rampingVus({ startVUs, stages, gracefulRampDown }: ScenarioOf<'ramping-vus'>): Execute {
  return async (host) => {
    const started = performance.now();
    const active: RampedLoop[] = [];
    const all: Promise<void>[] = [];
    while (!host.stopping.aborted) {
      const wanted = plannedVus(startVUs, stages, performance.now() - started);
      while (active.length < wanted) {
        const loop = new RampedLoop(host);
        active.push(loop);
        all.push(loop.run());
      }
      while (active.length > wanted) active.pop()!.stop(gracefulRampDown);
      await wait(LOOK_MS, host.stopping);
    }
    await Promise.all(all);
  };
}

/** Linear within a stage, and whole. @param elapsed milliseconds since the scenario began */
export function plannedVus(start: number, stages: readonly Stage[], elapsed: number): number {
  let from = start;
  let begin = 0;
  for (const { duration, target } of stages) {
    if (elapsed < begin + duration) return Math.round(from + ((target - from) * (elapsed - begin)) / duration);
    begin += duration;
    from = target;
  }
  return from;
}

class RampedLoop {
  readonly #host: ScenarioHost;
  #vu: ScenarioVu | null = null;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(host: ScenarioHost) {
    this.#host = host;
  }

  async run(): Promise<void> {
    const vu = await this.#host.borrow();
    this.#vu = vu;
    try {
      while (!this.#isStopped && !vu.isClosed && !this.#host.stopping.aborted) await vu.iterate();
    } finally {
      clearTimeout(this.#timer);
      this.#vu = null;
      vu.giveBack();
    }
  }

  /** Its iteration may go on for that long. */
  stop(graceMs: number): void {
    this.#isStopped = true;
    this.#timer = setTimeout(() => void this.#vu?.interrupt(), graceMs);
  }
}
