/**
 * A moderate load of everything for a long time: does the end look like the beginning? Ends early when errors gather.
 *
 *   k6 run -e DURATION=8h load-tests/soak.ts      npm run load -- soak -e DURATION=30m
 */
import exec from 'k6/execution';
import http from 'k6/http';
import { Trend } from 'k6/metrics';
import type { Options } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import { converse } from './lib/chat-over-websocket.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { checkIdle, requireServer } from './lib/server-state.ts';
import { goals, headers, settings } from './lib/settings.ts';
import { acceptanceThresholds } from './lib/thresholds.ts';

/** Resident memory of the server's process, in bytes. */
const memory = new Trend('server_memory_bytes');
const rate = settings.number('RATE', 0.5);
const duration = settings.text('DURATION', '30m');
const TOLERATED_ERRORS = 10;

export const options: Options = {
  scenarios: {
    everything: {
      executor: 'constant-arrival-rate',
      rate: Math.round(rate * 60),
      timeUnit: '1m',
      duration,
      preAllocatedVUs: 8,
      maxVUs: 16,
      tags: { load: `${rate}/s` },
    },
    watch: { executor: 'constant-arrival-rate', exec: 'watch', rate: 6, timeUnit: '1m', duration, preAllocatedVUs: 1 },
  },
  thresholds: {
    llm_errors: ['count==0', { threshold: `count<${TOLERATED_ERRORS}`, abortOnFail: true }],
    'llm_ttft{phase:early}': [`p(95)<${goals.ttft}`],
    'llm_ttft{phase:late}': [`p(95)<${goals.ttft}`],
    'llm_tpot{phase:early}': [`p(95)<${goals.tpot}`],
    'llm_tpot{phase:late}': [`p(95)<${goals.tpot}`],
    'server_memory_bytes{phase:early}': ['med>=0'],
    'server_memory_bytes{phase:late}': [`max<${settings.number('MAX_MEMORY_BYTES', 4e9)}`],
    ...acceptanceThresholds(),
    checks: ['rate==1'],
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function everything(): void {
  const number = exec.scenario.iterationInTest;
  const prompt = promptAt(prompts, number);
  const tags = { phase: phase() };
  const sampling = number % 2 === 0 ? {} : { temperature: 0.8, seed: number };
  switch (number % 4) {
    case 2:
      converse([{ prompt, sampling, tags }], () => undefined);
      break;
    case 3:
      converse([{ prompt, sampling, tags, leaveAfter: 2 }], () => undefined);
      break;
    default:
      chat(prompt, { sampling, tags });
  }
}

export function watch(): void {
  const { body } = http.get(`${settings.baseUrl}/metrics`, { headers: headers(), tags: { name: '/metrics' } });
  const found = /^process_resident_memory_bytes(?:\{[^}]*\})? (\S+)$/m.exec(String(body))?.[1];
  if (found !== undefined) memory.add(Number(found), { phase: phase() });
}

function phase(): string {
  const { progress } = exec.scenario;
  return progress < 0.25 ? 'early' : progress < 0.75 ? 'middle' : 'late';
}

export const teardown = checkIdle;
