/** How a scenario runs, how long it may take, and how many users it needs. */
import type { Scenario } from '../options.ts';
import { constantArrivalRate, rampingArrivalRate } from './arrival-rate.ts';
import { constantVus, perVuIterations, sharedIterations } from './closed-loops.ts';
import type { Execute } from './executor.ts';
import { rampingVus } from './ramping-vus.ts';

export interface ScenarioPlan {
  readonly execute: Execute;
  /** Milliseconds after which no iteration starts any more. */
  readonly durationMs: number;
  /** Iterations after which it ends; null where time ends it. */
  readonly iterations: number | null;
  /** Users made ready before the test. */
  readonly vus: number;
  /** Users it may have. */
  readonly maxVus: number;
}

const total = (stages: readonly { readonly duration: number }[]) => stages.reduce((sum, { duration }) => sum + duration, 0);

export function scenarioPlan(scenario: Scenario): ScenarioPlan {
  switch (scenario.executor) {
    case 'constant-vus': {
      const { vus, duration } = scenario;
      return { execute: constantVus(scenario), durationMs: duration, iterations: null, vus, maxVus: vus };
    }
    case 'ramping-vus': {
      const vus = Math.max(scenario.startVUs, ...scenario.stages.map(({ target }) => target));
      return { execute: rampingVus(scenario), durationMs: total(scenario.stages), iterations: null, vus, maxVus: vus };
    }
    case 'per-vu-iterations': {
      const { vus, iterations, maxDuration } = scenario;
      return { execute: perVuIterations(scenario), durationMs: maxDuration, iterations: vus * iterations, vus, maxVus: vus };
    }
    case 'shared-iterations': {
      const vus = Math.min(scenario.vus, scenario.iterations);
      const { iterations, maxDuration } = scenario;
      return { execute: sharedIterations(scenario), durationMs: maxDuration, iterations, vus, maxVus: vus };
    }
    case 'constant-arrival-rate':
    case 'ramping-arrival-rate': {
      const isConstant = scenario.executor === 'constant-arrival-rate';
      const { preAllocatedVUs: vus, maxVUs } = scenario;
      return {
        execute: isConstant ? constantArrivalRate(scenario) : rampingArrivalRate(scenario),
        durationMs: isConstant ? scenario.duration : total(scenario.stages),
        iterations: null,
        vus,
        maxVus: Math.max(vus, maxVUs ?? vus),
      };
    }
  }
}

/** The most users that scenarios need at one time, those still ending counted. */
export function vusAtOnce(scenarios: readonly Scenario[]): number {
  const plans = scenarios.map((scenario) => ({ scenario, ...scenarioPlan(scenario) }));
  const needed = plans.map(({ scenario: { startTime } }) =>
    plans
      .filter(({ scenario, durationMs }) => {
        const ends = scenario.startTime + durationMs + scenario.gracefulStop;
        return scenario.startTime <= startTime && startTime < ends;
      })
      .reduce((sum, { vus }) => sum + vus, 0),
  );
  return Math.max(...needed, 0);
}
