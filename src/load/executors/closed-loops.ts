/** Executors in which a user begins its next iteration when it has ended one: they go slower as the server does. */
import type { ScenarioOf } from '../options.ts';
import type { Execute, ScenarioHost } from './executor.ts';

export function constantVus({ vus }: ScenarioOf<'constant-vus'>): Execute {
  return (host) => together(vus, () => loop(host, () => true));
}

export function perVuIterations({ vus, iterations }: ScenarioOf<'per-vu-iterations'>): Execute {
  return (host) =>
    together(vus, () => {
      let left = iterations;
      return loop(host, () => left-- > 0);
    });
}

export function sharedIterations({ vus, iterations }: ScenarioOf<'shared-iterations'>): Execute {
  return (host) => {
    let left = iterations;
    return together(Math.min(vus, iterations), () => loop(host, () => left-- > 0));
  };
}

async function together(count: number, run: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, run));
}

async function loop(host: ScenarioHost, mayStart: () => boolean): Promise<void> {
  const vu = await host.borrow();
  try {
    while (!host.stopping.aborted && mayStart()) await vu.iterate();
  } finally {
    vu.giveBack();
  }
}
