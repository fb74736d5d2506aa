import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The share of the time, in [0, 1], in which this thread's event loop was not waiting for something to do. Work on
 * other threads leaves it near 0 and work that blocks this one brings it near 1, on a fast machine as on a slow one.
 */
export async function eventLoopUtilization(ms: number): Promise<number> {
  const before = performance.eventLoopUtilization();
  await sleep(ms);
  return performance.eventLoopUtilization(before).utilization;
}
