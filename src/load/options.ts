/** `options` of a script, checked, with every scenario spelled out. */
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import { parseDuration } from './duration.ts';

const duration = z.union([z.string(), z.number()]).transform((value, context) => {
  try {
    return parseDuration(value, 'an option');
  } catch (error) {
    context.issues.push({ code: 'custom', message: (error as Error).message, input: value });
    return z.NEVER;
  }
});
const count = z.number().int().positive();
const stages = z.array(z.strictObject({ duration, target: z.number().nonnegative() })).min(1);
const tagValues = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String));

const common = {
  startTime: duration.default(0),
  gracefulStop: duration.default(30_000),
  exec: z.string().default('default'),
  env: z.record(z.string(), z.string()).default({}),
  tags: tagValues.default({}),
};
const MAX_DURATION_MS = 600_000;
const iterations = { vus: count.default(1), iterations: count.default(1), maxDuration: duration.default(MAX_DURATION_MS) };
const arrival = { timeUnit: duration.default(1000), preAllocatedVUs: count, maxVUs: count.optional() };

const scenarioSchema = z.discriminatedUnion('executor', [
  z.strictObject({ executor: z.literal('shared-iterations'), ...iterations, ...common }),
  z.strictObject({ executor: z.literal('per-vu-iterations'), ...iterations, ...common }),
  z.strictObject({ executor: z.literal('constant-vus'), vus: count.default(1), duration, ...common }),
  z.strictObject({
    executor: z.literal('ramping-vus'),
    startVUs: z.number().int().nonnegative().default(1),
    stages,
    gracefulRampDown: duration.default(30_000),
    ...common,
  }),
  z.strictObject({
    executor: z.literal('constant-arrival-rate'),
    rate: z.number().positive(),
    duration,
    ...arrival,
    ...common,
  }),
  z.strictObject({
    executor: z.literal('ramping-arrival-rate'),
    startRate: z.number().nonnegative().default(0),
    stages,
    ...arrival,
    ...common,
  }),
]);

const threshold = z.union([
  z.string(),
  z.strictObject({
    threshold: z.string(),
    abortOnFail: z.boolean().default(false),
    delayAbortEval: z.union([z.string(), z.number()]).default(0),
  }),
]);

const optionsSchema = z.strictObject({
  scenarios: z.record(z.string(), scenarioSchema).optional(),
  vus: count.optional(),
  iterations: count.optional(),
  duration: duration.optional(),
  stages: stages.optional(),
  thresholds: z.record(z.string(), z.array(threshold)).default({}),
  tags: tagValues.default({}),
  summaryTrendStats: z.array(z.string()).default(['avg', 'min', 'med', 'max', 'p(90)', 'p(95)']),
  setupTimeout: duration.default(60_000),
  teardownTimeout: duration.default(60_000),
  discardResponseBodies: z.boolean().default(false),
  noConnectionReuse: z.boolean().default(false),
});

export type Scenario = z.infer<typeof scenarioSchema>;
export type ScenarioOf<Executor extends Scenario['executor']> = Extract<Scenario, { readonly executor: Executor }>;

export interface TestOptions
  extends Omit<z.infer<typeof optionsSchema>, 'scenarios' | 'vus' | 'iterations' | 'duration' | 'stages'> {
  readonly scenarios: Readonly<Record<string, Scenario>>;
}

/** What the command line says in place of the script. */
export interface OptionOverrides {
  readonly vus?: number;
  readonly iterations?: number;
  readonly duration?: string;
}

/**
 * @param given what the script exports
 * @param overrides where there are any, the script's scenarios give way to one of these
 */
export function testOptions(given: unknown, overrides: OptionOverrides = {}): TestOptions {
  const isOverridden = Object.keys(overrides).length > 0;
  const { success, data, error } = optionsSchema.safeParse({
    ...(given ?? {}),
    ...(isOverridden ? { scenarios: undefined, stages: undefined, ...overrides } : {}),
  });
  if (!success) {
    const [issue] = error.issues;
    const where = ['options', ...(issue?.path ?? [])].join('.');
    throw new AppError('invalid_config', `Expected options that this runner knows, got ${where}: ${issue?.message}`, {
      details: { param: where },
    });
  }
  const { scenarios, vus, iterations: total, duration: time, stages: ramp, ...rest } = data;
  return { ...rest, scenarios: scenarios ?? { default: shortcut({ vus, iterations: total, duration: time, stages: ramp }) } };
}

interface Shortcuts {
  readonly vus: number | undefined;
  readonly iterations: number | undefined;
  readonly duration: number | undefined;
  readonly stages: z.output<typeof stages> | undefined;
}

/** A script without scenarios has one, by which of the shortcuts it uses. */
function shortcut({ vus = 1, iterations: total, duration: time, stages: ramp }: Shortcuts): Scenario {
  if (total !== undefined) {
    return scenarioSchema.parse({ executor: 'shared-iterations', vus, iterations: total, ...(time && { maxDuration: time }) });
  }
  if (time !== undefined) return scenarioSchema.parse({ executor: 'constant-vus', vus, duration: time });
  if (ramp !== undefined) return scenarioSchema.parse({ executor: 'ramping-vus', startVUs: vus, stages: ramp });
  return scenarioSchema.parse({ executor: 'shared-iterations', vus, iterations: vus });
}
