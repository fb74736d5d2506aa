/**
 * A steady stream of questions, whether the server keeps up or not: latency, goodput and acceptance under a load it should bear.
 *
 *   k6 run -e RATE=2 -e DURATION=2m load-tests/steady.ts      npm run load -- steady -e RATE=2
 */
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { requireServer } from './lib/server-state.ts';
import { settings } from './lib/settings.ts';
import { acceptanceThresholds, latencyThresholds } from './lib/thresholds.ts';

const rate = settings.number('RATE', 1);
const vus = settings.number('VUS', 8);

export const options: Options = {
  scenarios: {
    steady: {
      executor: 'constant-arrival-rate',
      // Rates below one a second are questions a minute.
      rate: Math.round(rate * 60),
      timeUnit: '1m',
      duration: settings.text('DURATION', '1m'),
      preAllocatedVUs: vus,
      maxVUs: vus * 4,
      tags: { load: `${rate}/s` },
    },
  },
  thresholds: {
    ...latencyThresholds(),
    ...acceptanceThresholds(),
    // One client too few at a time hides the wait of whoever would have come.
    dropped_iterations: ['count==0'],
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function steady(): void {
  chat(promptAt(prompts, exec.scenario.iterationInTest));
}
