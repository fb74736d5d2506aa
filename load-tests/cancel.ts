/**
 * Clients that leave in the middle of an answer, by a cancel, by closing the connection, by giving up an HTTP request, beside
 * others that stay: those who stay must not suffer, and nothing may be left behind.
 *
 *   k6 run load-tests/cancel.ts      npm run load -- cancel
 */
import { check } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import type { Options, Scenario } from 'k6/options';
import { CHAT_PATH, chatBody } from './lib/body.ts';
import { chat } from './lib/chat-over-http.ts';
import { converse } from './lib/chat-over-websocket.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { checkIdle, requireServer } from './lib/server-state.ts';
import { goals, headers, settings } from './lib/settings.ts';
import { acceptanceThresholds } from './lib/thresholds.ts';

const vus = settings.number('VUS', 1);
const KINDS = 4;
const iterations = settings.number('ITERATIONS', 8);
/** Longer than anyone waits who leaves. */
const LONG = { max_tokens: settings.number('LONG_TOKENS', 256) };

const client = (name: string, who: string): Scenario => ({
  executor: 'per-vu-iterations',
  vus,
  iterations,
  maxDuration: '2m',
  exec: name,
  tags: { who, load: String(KINDS * vus) },
});

export const options: Options = {
  scenarios: {
    cancels: client('cancels', 'leaver'),
    closes: client('closes', 'leaver'),
    givesUp: client('givesUp', 'leaver'),
    stays: client('stays', 'stayer'),
  },
  thresholds: {
    checks: ['rate==1'],
    llm_errors: ['count==0'],
    'llm_ttft{who:stayer}': [`p(95)<${goals.ttft}`],
    'llm_tpot{who:stayer}': [`p(95)<${goals.tpot}`],
    ...acceptanceThresholds(),
    dropped_iterations: ['count==0'],
  },
};

const prompts = loadPrompts(() => open(PROMPTS));
const next = () => promptAt(prompts, exec.scenario.iterationInTest);

export const setup = requireServer;

export function cancels(): void {
  converse([{ prompt: next(), sampling: LONG, leaveAfter: 2 }], ({ answers, cancelled }) => {
    // A short answer may be complete before the cancel arrives.
    check(answers.length + cancelled, { 'a cancelled request ends, cancelled or complete': (ended) => ended === 1 });
  });
}

export function closes(): void {
  converse(
    [{ prompt: next(), sampling: LONG, leaveAfter: 2 }],
    ({ answers }) => {
      check(answers.length, { 'a closed connection gets no more': (count) => count <= 1 });
    },
    'close',
  );
}

export function givesUp(): void {
  const response = http.post(settings.baseUrl + CHAT_PATH, chatBody(next(), LONG), {
    headers: headers(),
    tags: { name: CHAT_PATH },
    timeout: settings.text('PATIENCE', '100ms'),
  });
  check(response, { 'who gives up has no answer, or a whole one': ({ status }) => status === 0 || status === 200 });
}

export function stays(): void {
  const { error } = chat(next());
  check(error, { 'who stays is answered': (none) => none === null });
}

export const teardown = checkIdle;
