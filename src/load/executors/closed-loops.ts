/** Executors in which a user begins its next iteration when it has ended one: they go slower as the server does. */
import type { ScenarioOf } from '../options.ts';
import type { Execute, ScenarioHost } from './executor.ts';

export function constantVus({ vus }: ScenarioOf<'constant-vus'>): Execute {
  return (host) => together(vus, () => loop(host, new Countdown(Number.POSITIVE_INFINITY)));
}

export function perVuIterations({ vus, iterations }: ScenarioOf<'per-vu-iterations'>): Execute {
  return (host) =>
    together(vus, () => {
      const left = new Countdown(iterations);
      return dropping(host, left, loop(host, left));
    });
}

export function sharedIterations({ vus, iterations }: ScenarioOf<'shared-iterations'>): Execute {
  return (host) => {
    const left = new Countdown(iterations);
    return dropping(
      host,
      left,
      together(Math.min(vus, iterations), () => loop(host, left)),
    );
  };
}

async function together(count: number, run: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, run));
}

/** Iterations that are left to begin. */
class Countdown {
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  take(): boolean {
    if (this.left === 0) return false;
    this.left -= 1;
    return true;
  }
}

/** What is left when all is over did not happen, and says so. */
async function dropping(host: ScenarioHost, iterations: Countdown, all: Promise<void>): Promise<void> {
  await all;
  if (iterations.left > 0) host.drop(iterations.left);
}

async function loop(host: ScenarioHost, iterations: Countdown): Promise<void> {
  const vu = await host.borrow();
  try {
    while (!host.stopping.aborted && !vu.isClosed && iterations.take()) await vu.iterate();
  } finally {
    vu.giveBack();
  }
}
