/**
 * Many questions at once on top of a calm load: who is refused is told so, and afterwards all is as before.
 *
 *   k6 run -e BURST=32 load-tests/burst.ts      npm run load -- burst -e BURST=32
 */
import exec from 'k6/execution';
import type { Options, Scenario } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { checkIdle, requireServer } from './lib/server-state.ts';
import { goals, settings } from './lib/settings.ts';
import { acceptanceThresholds } from './lib/thresholds.ts';
import type { ErrorType } from './lib/types.ts';

const burst = settings.number('BURST', 16);
const rate = settings.number('RATE', 1);
const calmSeconds = settings.number('CALM_SECONDS', 15);
const recoverySeconds = settings.number('RECOVERY_SECONDS', 15);

const calm = (phase: string, startSeconds: number): Scenario => ({
  executor: 'constant-arrival-rate',
  rate: Math.round(rate * 60),
  timeUnit: '1m',
  duration: `${calmSeconds}s`,
  startTime: `${startSeconds}s`,
  preAllocatedVUs: 8,
  tags: { phase, load: `${rate}/s` },
});

/** A full queue is an answer; anything else is a failure. */
const FAILURES: readonly ErrorType[] = ['network', 'timeout', 'http_4xx', 'http_5xx', 'stream', 'decode'];

export const options: Options = {
  scenarios: {
    before: calm('before', 0),
    burst: {
      executor: 'per-vu-iterations',
      vus: burst,
      iterations: 1,
      startTime: `${calmSeconds}s`,
      maxDuration: `${recoverySeconds}s`,
      tags: { phase: 'burst', load: String(burst) },
    },
    after: calm('after', calmSeconds + recoverySeconds),
  },
  thresholds: {
    ...Object.fromEntries(FAILURES.map((type) => [`llm_errors{type:${type}}`, ['count==0']])),
    'llm_ttft{phase:before}': [`p(95)<${goals.ttft}`],
    'llm_ttft{phase:after}': [`p(95)<${goals.ttft}`],
    'llm_goodput{phase:burst}': ['rate>=0'],
    'llm_goodput{phase:after}': [`rate>=${goals.goodput}`],
    ...acceptanceThresholds(),
    checks: ['rate==1'],
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function askOnce(): void {
  // In a burst all would be the first iteration of their user; the number of the test differs.
  chat(promptAt(prompts, exec.scenario.iterationInTest));
}

export const teardown = checkIdle;
