/**
 * Does everything work at all? A few clients, a few questions, in seconds.
 *
 *   k6 run load-tests/smoke.ts      npm run load -- smoke
 */
import { check } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { checkIdle, requireServer } from './lib/server-state.ts';
import { settings } from './lib/settings.ts';
import { acceptanceThresholds, latencyThresholds } from './lib/thresholds.ts';

const vus = settings.number('VUS', 2);

export const options: Options = {
  scenarios: {
    smoke: {
      executor: 'shared-iterations',
      vus,
      iterations: settings.number('ITERATIONS', 16),
      maxDuration: '2m',
      tags: { load: String(vus) },
    },
  },
  thresholds: {
    checks: ['rate==1'],
    ...latencyThresholds(),
    ...acceptanceThresholds(),
    // What the time was too short for is not fine.
    dropped_iterations: ['count==0'],
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function smoke(): void {
  const answer = chat(promptAt(prompts, exec.scenario.iterationInTest));
  check(answer, {
    'the answer has no error': ({ error }) => error === null,
    'the answer has a text': ({ text }) => text.length > 0,
  });
}

export const teardown = checkIdle;
