/**
 * Conversations over WebSocket, where each delivery is seen as it comes: time to the first token, the gaps between deliveries,
 * acceptance; and the same text as over HTTP.
 *
 *   k6 run load-tests/websocket.ts      npm run load -- websocket
 */
import { check } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import { converse } from './lib/chat-over-websocket.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { checkIdle, requireServer } from './lib/server-state.ts';
import { settings } from './lib/settings.ts';
import { acceptanceThresholds, latencyThresholds } from './lib/thresholds.ts';

const QUESTIONS = 3;
const vus = settings.number('VUS', 2);

export const options: Options = {
  scenarios: {
    conversations: {
      executor: 'per-vu-iterations',
      vus,
      iterations: settings.number('ITERATIONS', 4),
      maxDuration: '3m',
      tags: { load: String(vus) },
    },
  },
  thresholds: {
    checks: ['rate==1'],
    ...latencyThresholds(),
    llm_itl: [`p(95)<${settings.number('SLO_ITL_MS', 500)}`],
    ...acceptanceThresholds(),
    dropped_iterations: ['count==0'],
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function conversation(): void {
  const first = exec.scenario.iterationInTest * QUESTIONS;
  const asked = Array.from({ length: QUESTIONS }, (_, i) => promptAt(prompts, first + i));
  converse(
    asked.map((prompt) => ({ prompt, tags: { transport: 'websocket' } })),
    ({ answers }) => {
      check(answers, {
        'all questions are answered': (all) => all.length === QUESTIONS && all.every(({ error }) => error === null),
      });
      const again = asked[0];
      if (again === undefined) return;
      const { text } = chat(again, { tags: { transport: 'http' } });
      check(answers[0], { 'the text is that of HTTP': (answer) => answer?.text === text });
    },
  );
}

export const teardown = checkIdle;
