import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export interface TimerGap {
  /** As an observer sees it. */
  readonly observed: number;
  /** Less the time in which this thread was ready to run and the system gave its processor to others. */
  readonly own: number;
  /** Whether more wants to run on this machine than this process explains, so that only {@link own} says something. */
  readonly overloaded: boolean;
}

/**
 * How long the event loop kept a timer waiting, in milliseconds: the 99th percentile of the gaps between firings of a
 * timer of 1 ms, beyond that millisecond; the median of several windows.
 */
export async function p99TimerGap(windows: number, windowMs: number): Promise<TimerGap> {
  const observed: number[] = [];
  const own: number[] = [];
  for (let window = 0; window < windows; window++) {
    const gaps: number[] = [];
    const ownGaps: number[] = [];
    let last = performance.now();
    let waited = waitedForProcessor();
    const timer = setInterval(() => {
      const now = performance.now();
      const waitedNow = waitedForProcessor();
      gaps.push(now - last - 1);
      ownGaps.push(now - last - 1 - (waitedNow - waited));
      last = now;
      waited = waitedNow;
    }, 1);
    await sleep(windowMs);
    clearInterval(timer);
    observed.push(percentile(gaps, 0.99));
    own.push(percentile(ownGaps, 0.99));
  }
  const OWN_LOAD = 1;
  const overloaded = loadavg()[0]! > availableParallelism() + OWN_LOAD;
  return { observed: percentile(observed, 0.5), own: percentile(own, 0.5), overloaded };
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)] ?? Number.POSITIVE_INFINITY;
}

/** Milliseconds that the main thread has spent ready to run without running, since it began; 0 where the system does not say. */
function waitedForProcessor(): number {
  if (process.platform !== 'linux') return 0;
  const [, waitedNs] = readFileSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, 'utf8').split(' ');
  return Number(waitedNs) / 1e6;
}
