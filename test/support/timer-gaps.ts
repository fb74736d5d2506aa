import { setTimeout as sleep } from 'node:timers/promises';

/**
 * How long the event loop kept a timer waiting, in milliseconds: the 99th percentile of the gaps between firings of a
 * timer of 1 ms, beyond that millisecond. Measured in several windows; the median window counts, so that a moment in
 * which the machine was busy with something else does not.
 */
export async function p99TimerGap(windows: number, windowMs: number): Promise<number> {
  const results: number[] = [];
  for (let window = 0; window < windows; window++) {
    const gaps: number[] = [];
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      gaps.push(now - last - 1);
      last = now;
    }, 1);
    await sleep(windowMs);
    clearInterval(timer);
    gaps.sort((a, b) => a - b);
    results.push(gaps[Math.floor(gaps.length * 0.99)] ?? Number.POSITIVE_INFINITY);
  }
  results.sort((a, b) => a - b);
  return results[Math.floor(results.length / 2)] as number;
}
