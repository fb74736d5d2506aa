/** Executors in which iterations begin at given times, however long the server takes: waiting shows. */
import type { ScenarioOf } from '../options.ts';
import type { Execute } from './executor.ts';
import { wait } from './wait.ts';

/** A part of a scenario, in which the rate goes from one value to another. Milliseconds, and iterations per millisecond. */
export interface RateSegment {
  readonly duration: number;
  readonly from: number;
  readonly to: number;
}

export function constantArrivalRate({ rate, timeUnit, duration }: ScenarioOf<'constant-arrival-rate'>): Execute {
  return arrivals([{ duration, from: rate / timeUnit, to: rate / timeUnit }]);
}

export function rampingArrivalRate({ startRate, stages, timeUnit }: ScenarioOf<'ramping-arrival-rate'>): Execute {
  return arrivals(
    stages.map(({ duration, target }, i) => ({
      duration,
      from: (i === 0 ? startRate : stages[i - 1]!.target) / timeUnit,
      to: target / timeUnit,
    })),
  );
}

function arrivals(segments: readonly RateSegment[]): Execute {
  return async (host) => {
    const started = performance.now();
    const running = new Set<Promise<void>>();
    for (const at of startTimes(segments)) {
      await wait(at - (performance.now() - started), host.stopping);
      if (host.stopping.aborted) break;
      const vu = host.tryBorrow();
      if (vu === null) {
        host.drop();
        continue;
      }
      const iteration = vu.iterate().finally(() => {
        vu.giveBack();
        running.delete(iteration);
      });
      running.add(iteration);
    }
    await Promise.all(running);
  };
}

/** When each iteration begins: iteration k, when the number that the rates add up to has reached k. */
export function* startTimes(segments: readonly RateSegment[]): Generator<number, void, undefined> {
  let next = 0;
  let planned = 0;
  let begin = 0;
  for (const { duration, from, to } of segments) {
    const total = ((from + to) / 2) * duration;
    // One that is due at the end of a segment belongs to the next one; rounding errors do not move it.
    while (next < planned + total - 1e-9) {
      yield begin + timeOf(next - planned, { duration, from, to });
      next++;
    }
    planned += total;
    begin += duration;
  }
}

/** The time t at which from·t + (to - from)·t²/(2·duration) is `count`. */
function timeOf(count: number, { duration, from, to }: RateSegment): number {
  const half = (to - from) / (2 * duration);
  if (Math.abs(half) < 1e-15) return from === 0 ? 0 : count / from;
  // Of the two roots the one at which the rate is not negative, in the form that does not lose digits.
  const root = Math.sqrt(Math.max(from * from + 4 * half * count, 0));
  return from + root === 0 ? 0 : (2 * count) / (from + root);
}
