/**
 * All kinds of requests side by side: every category, short and long prompts, greedy and sampled. Drafts fare differently in each,
 * so acceptance is told and held to its floor apart.
 *
 *   k6 run -e VUS=4 -e DURATION=1m load-tests/mixed.ts      npm run load -- mixed
 */
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { checkIdle, requireServer } from './lib/server-state.ts';
import { goals, settings } from './lib/settings.ts';
import { acceptanceThresholds, keep, latencyThresholds } from './lib/thresholds.ts';
import type { Prompt } from './lib/types.ts';

const prompts = loadPrompts(() => open(PROMPTS));
/** A text that people wrote, for long prompts. */
const notes = open('../docs/architecture.md').slice(0, settings.number('LONG_CHARACTERS', 2000));
const categories = [...new Set(prompts.map(({ category }) => category))];
const floor = settings.drafter === 'none' ? [] : [`avg>${goals.acceptanceLength}`];

const vus = settings.number('VUS', 4);

export const options: Options = {
  scenarios: {
    mixed: {
      executor: 'constant-vus',
      vus,
      duration: settings.text('DURATION', '30s'),
      tags: { load: String(vus) },
    },
  },
  thresholds: {
    ...latencyThresholds(),
    ...acceptanceThresholds(),
    ...Object.assign({}, ...categories.map((category) => keep('spec_acceptance_length', { category }, 'avg'))),
    ...Object.assign({}, ...['short', 'long'].map((prompt) => keep('llm_ttft', { prompt }, 'p(95)'))),
    'spec_acceptance_length{sampling:greedy}': floor,
    'spec_acceptance_length{sampling:sampled}': floor,
    checks: ['rate==1'],
  },
};

export const setup = requireServer;

export default function ask(): void {
  const number = exec.scenario.iterationInTest;
  const isSampled = number % 2 === 1;
  const isLong = number % 4 >= 2;
  const prompt = promptAt(prompts, Math.floor(number / 4));
  chat(isLong ? withNotes(prompt) : prompt, {
    sampling: isSampled ? { temperature: 0.8, seed: number } : {},
    tags: { sampling: isSampled ? 'sampled' : 'greedy', prompt: isLong ? 'long' : 'short' },
  });
}

function withNotes(prompt: Prompt): Prompt {
  const question = prompt.messages.at(-1)?.content ?? '';
  return { ...prompt, messages: [{ role: 'user', content: `These are the notes of a project:\n\n${notes}\n\n${question}` }] };
}

export const teardown = checkIdle;
