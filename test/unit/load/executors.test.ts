import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startTimes } from '../../../src/load/executors/arrival-rate.ts';
import type { ScenarioHost, ScenarioVu } from '../../../src/load/executors/executor.ts';
import { plannedVus } from '../../../src/load/executors/ramping-vus.ts';
import { scenarioPlan, vusAtOnce } from '../../../src/load/executors/scenario-plan.ts';
import { testOptions } from '../../../src/load/options.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Iterations that take a fixed time, on so many users. */
class FakeHost implements ScenarioHost {
  readonly #stop = new AbortController();
  readonly starts: number[] = [];
  readonly #begun = performance.now();
  readonly #iterationMs: number;
  dropped = 0;
  most = 0;
  #free: number;
  #running = 0;
  /** Iterations after which a user is gone. */
  readonly #lives: number;

  constructor(users: number, iterationMs: number, lives = Number.POSITIVE_INFINITY) {
    this.#lives = lives;
    this.#free = users;
    this.#iterationMs = iterationMs;
  }

  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  stop(): void {
    this.#stop.abort();
  }

  async borrow(): Promise<ScenarioVu> {
    return this.tryBorrow()!;
  }

  tryBorrow(): ScenarioVu | null {
    if (this.#free === 0) return null;
    this.#free -= 1;
    let left = this.#lives;
    return {
      get isClosed() {
        return left === 0;
      },
      iterate: async () => {
        if (left === 0) return;
        left -= 1;
        this.starts.push(Math.round(performance.now() - this.#begun));
        this.#running += 1;
        this.most = Math.max(this.most, this.#running);
        await new Promise((resolve) => setTimeout(resolve, this.#iterationMs));
        this.#running -= 1;
      },
      interrupt: () => Promise.resolve(),
      giveBack: () => {
        this.#free += 1;
      },
    };
  }

  drop(count = 1): void {
    this.dropped += count;
  }
}

async function ran(given: object, host: FakeHost, ms: number): Promise<FakeHost> {
  const scenario = testOptions({ scenarios: { one: given } }).scenarios['one']!;
  const plan = scenarioPlan(scenario);
  const end = plan.execute(host);
  setTimeout(() => host.stop(), Math.min(plan.durationMs, ms));
  await vi.advanceTimersByTimeAsync(ms + 10_000);
  await end;
  return host;
}

describe('arrival rates', () => {
  it('begin iterations at even distances, however long they take', async () => {
    const host = await ran(
      { executor: 'constant-arrival-rate', rate: 4, duration: '2s', preAllocatedVUs: 10 },
      new FakeHost(10, 900),
      2000,
    );
    expect(host.starts).toEqual([0, 250, 500, 750, 1000, 1250, 1500, 1750]);
    expect(host.dropped).toBe(0);
  });

  it('drop iterations for which no user is free', async () => {
    const host = await ran(
      { executor: 'constant-arrival-rate', rate: 4, duration: '2s', preAllocatedVUs: 2 },
      new FakeHost(2, 900),
      2000,
    );
    expect(host.starts).toEqual([0, 250, 1000, 1250]);
    expect(host.dropped).toBe(4);
  });

  it('add up to the area below the rate when it changes', () => {
    // From 0 to 10 a second in 2 s: 10 iterations, the k-th at sqrt(k · 0.4) s; then 1 s at 10 a second.
    const times = [
      ...startTimes([
        { duration: 2000, from: 0, to: 0.01 },
        { duration: 1000, from: 0.01, to: 0.01 },
      ]),
    ];
    expect(times).toHaveLength(20);
    expect(times[1]).toBeCloseTo(Math.sqrt(0.4) * 1000, 6);
    expect(times[9]).toBeCloseTo(Math.sqrt(3.6) * 1000, 6);
    expect(times[10]).toBeCloseTo(2000, 6);
    expect(times[19]).toBeCloseTo(2900, 6);
  });

  it('slow down as well', () => {
    const times = [...startTimes([{ duration: 2000, from: 0.01, to: 0 }])];
    expect(times).toHaveLength(10);
    const gaps = times.slice(1).map((time, i) => time - times[i]!);
    expect(gaps.every((gap, i) => i === 0 || gap > gaps[i - 1]!)).toBe(true);
  });

  it('count per unit of time', async () => {
    const host = await ran(
      { executor: 'constant-arrival-rate', rate: 30, timeUnit: '1m', duration: '6s', preAllocatedVUs: 1 },
      new FakeHost(1, 10),
      6000,
    );
    expect(host.starts).toEqual([0, 2000, 4000]);
  });
});

describe('closed loops', () => {
  it('keep so many users busy for a time', async () => {
    const host = await ran({ executor: 'constant-vus', vus: 2, duration: '1s' }, new FakeHost(2, 300), 1000);
    expect(host.starts).toEqual([0, 0, 300, 300, 600, 600, 900, 900]);
  });

  it('give each user its iterations', async () => {
    const host = await ran({ executor: 'per-vu-iterations', vus: 2, iterations: 2 }, new FakeHost(2, 100), 5000);
    expect(host.starts).toEqual([0, 0, 100, 100]);
  });

  it('share iterations', async () => {
    const host = await ran({ executor: 'shared-iterations', vus: 2, iterations: 3 }, new FakeHost(2, 100), 5000);
    expect(host.starts).toEqual([0, 0, 100]);
  });

  it.each([
    // Three begin before the time is over: at 0, 300 and 600 ms.
    [{ executor: 'per-vu-iterations', vus: 2, iterations: 4, maxDuration: '700ms' }, 6, 2],
    [{ executor: 'shared-iterations', vus: 2, iterations: 8, maxDuration: '700ms' }, 6, 2],
    [{ executor: 'shared-iterations', vus: 2, iterations: 6, maxDuration: '5s' }, 6, 0],
  ])('drop what the time was too short for: %j', async (given, started, dropped) => {
    const host = await ran(given, new FakeHost(2, 300), 5000);
    expect([host.starts.length, host.dropped]).toEqual([started, dropped]);
  });

  it.each([
    [{ executor: 'constant-vus', vus: 2, duration: '2s' }, 0],
    [{ executor: 'ramping-vus', startVUs: 2, stages: [{ duration: '2s', target: 2 }] }, 0],
    [{ executor: 'per-vu-iterations', vus: 2, iterations: 5 }, 4],
    [{ executor: 'shared-iterations', vus: 2, iterations: 10 }, 4],
  ])('end with the users that they have: %j', async (given, dropped) => {
    const host = await ran(given, new FakeHost(2, 100, 3), 2000);
    expect([host.starts.length, host.dropped]).toEqual([6, dropped]);
  });

  it('become more and fewer', async () => {
    const stages = [
      { duration: '1s', target: 4 },
      { duration: '1s', target: 0 },
    ];
    const host = await ran({ executor: 'ramping-vus', startVUs: 0, stages }, new FakeHost(4, 100), 2000);
    expect(host.most).toBe(4);
    const early = host.starts.filter((at) => at < 250).length;
    const middle = host.starts.filter((at) => at >= 875 && at < 1125).length;
    expect(middle).toBeGreaterThan(3 * early);
  });

  it('follow straight lines between stages', () => {
    const stages = [
      { duration: 1000, target: 10 },
      { duration: 1000, target: 10 },
      { duration: 500, target: 0 },
    ];
    expect([0, 500, 1000, 1500, 2250, 3000].map((at) => plannedVus(0, stages, at))).toEqual([0, 5, 10, 10, 5, 0]);
  });
});

describe('options', () => {
  it('of scripts without scenarios make one', () => {
    expect(testOptions({ vus: 3, duration: '10s' }).scenarios).toMatchObject({
      default: { executor: 'constant-vus', vus: 3, duration: 10_000 },
    });
    expect(testOptions({ vus: 3, iterations: 9 }).scenarios).toMatchObject({
      default: { executor: 'shared-iterations', vus: 3, iterations: 9 },
    });
    expect(testOptions(undefined).scenarios).toMatchObject({
      default: { executor: 'shared-iterations', vus: 1, iterations: 1 },
    });
  });

  it('give way to those of the command line', () => {
    const given = { scenarios: { a: { executor: 'constant-vus', vus: 9, duration: '1h' } } };
    expect(testOptions(given, { vus: 1, iterations: 2 }).scenarios).toMatchObject({
      default: { executor: 'shared-iterations', vus: 1, iterations: 2 },
    });
  });

  it.each([
    [{ scenarios: { a: { executor: 'constant-vus', vus: 1 } } }, 'options.scenarios.a.duration'],
    [{ scenarios: { a: { executor: 'fastest', vus: 1 } } }, 'options.scenarios.a.executor'],
    [{ duration: 'soon' }, 'options.duration'],
    [{ cloud: {} }, 'options'],
  ])('that cannot be used are refused by name: %j', (given, param) => {
    expect(() => testOptions(given)).toThrow(expect.objectContaining({ code: 'invalid_config', details: { param } }));
  });

  it('tell how many users scenarios need at one time', () => {
    const { scenarios } = testOptions({
      scenarios: {
        a: { executor: 'constant-vus', vus: 4, duration: '10s', gracefulStop: '0s' },
        b: { executor: 'constant-vus', vus: 3, duration: '10s', startTime: '5s', gracefulStop: '0s' },
        c: { executor: 'constant-vus', vus: 5, duration: '10s', startTime: '15s', gracefulStop: '0s' },
      },
    });
    expect(vusAtOnce(Object.values(scenarios))).toBe(7);
  });
});
