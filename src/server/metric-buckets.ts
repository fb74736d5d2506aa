/** Histogram buckets: vLLM's own where it has the metric, so that its dashboards read ours. Seconds and tokens. */

export const TTFT_BUCKETS: readonly number[] = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];

export const INTER_TOKEN_BUCKETS: readonly number[] = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
];

export const LATENCY_BUCKETS: readonly number[] = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
];

export const ITERATION_BUCKETS: readonly number[] = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/** Ours: a step of a small model takes milliseconds. */
export const STEP_BUCKETS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

const LARGEST_CONTEXT = 1_000_000;

/** 1, 2, 5, 10, 20, 50 … as vLLM builds them, up to the longest context of today's models. */
export function tokenBuckets(): readonly number[] {
  const buckets: number[] = [];
  for (let power = 1; power <= LARGEST_CONTEXT; power *= 10) {
    buckets.push(...[1, 2, 5].map((factor) => factor * power).filter((value) => value <= LARGEST_CONTEXT));
  }
  return buckets;
}
