/**
 * More and more questions a second, level by level, until the server does not keep up: where is the knee, and does acceptance
 * hold on the way there?
 *
 *   k6 run -e RATES=0.5,1,2,4 -e LEVEL_SECONDS=30 load-tests/ramp.ts      npm run load -- ramp
 */
import exec from 'k6/execution';
import type { Options, Scenario } from 'k6/options';
import { chat } from './lib/chat-over-http.ts';
import {
  crossedThresholds,
  figure,
  LEVEL_METRICS,
  milliseconds,
  outputs,
  type SummaryData,
  table,
} from './lib/level-report.ts';
import { loadPrompts, PROMPTS, promptAt } from './lib/prompts.ts';
import { requireServer } from './lib/server-state.ts';
import { goals, settings } from './lib/settings.ts';
import { acceptanceThresholds, keep } from './lib/thresholds.ts';

const rates = settings.list('RATES', '0.5,1,2,4,8').map(Number);
const seconds = settings.number('LEVEL_SECONDS', 20);
const vus = settings.number('VUS', 32);
/** What is still under way when a level ends would burden the next one. */
const pauseSeconds = settings.number('PAUSE_SECONDS', 5);

const levels = rates.map((rate, index) => {
  const load = `${rate}/s`;
  const scenario: Scenario = {
    executor: 'constant-arrival-rate',
    rate: Math.round(rate * 60),
    timeUnit: '1m',
    duration: `${seconds}s`,
    startTime: `${index * (seconds + pauseSeconds)}s`,
    gracefulStop: `${pauseSeconds}s`,
    preAllocatedVUs: vus,
    tags: { load },
  };
  return { rate, load, scenario };
});

export const options: Options = {
  scenarios: Object.fromEntries(levels.map(({ rate, scenario }) => [`rate_${String(rate).replace('.', '_')}`, scenario])),
  thresholds: {
    ...Object.assign(
      {},
      ...levels.flatMap(({ load }) => Object.entries(LEVEL_METRICS).map(([metric, of]) => keep(metric, { load }, of))),
    ),
    // The first level is one that the server must bear.
    [`llm_goodput{load:${levels[0]?.load}}`]: [`rate>=${goals.goodput}`],
    ...acceptanceThresholds(),
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function ramp(): void {
  chat(promptAt(prompts, exec.scenario.iterationInTest));
}

export function handleSummary(data: SummaryData): Record<string, string> {
  const good = levels.filter(
    ({ load }) =>
      figure(data, 'llm_goodput', { load }, 'rate') >= goals.goodput &&
      figure(data, 'dropped_iterations', { load }, 'count') === 0,
  );
  const knee = good.at(-1);
  const rows = levels.map(({ load, rate }) => [
    load,
    (figure(data, 'llm_output_tokens', { load }, 'count') / seconds).toFixed(1),
    milliseconds(figure(data, 'llm_ttft', { load }, 'p(95)')),
    milliseconds(figure(data, 'llm_tpot', { load }, 'p(95)')),
    `${(100 * figure(data, 'llm_goodput', { load }, 'rate')).toFixed(0)} %`,
    figure(data, 'spec_acceptance_length', { load }, 'avg').toFixed(2),
    figure(data, 'llm_errors', { load }, 'count').toFixed(0),
    figure(data, 'dropped_iterations', { load }, 'count').toFixed(0),
    rate === knee?.rate ? '← knee' : '',
  ]);
  const header = ['load', 'tokens/s', 'TTFT p95 ms', 'TPOT p95 ms', 'goodput', 'AL', 'errors', 'dropped', ''];
  const verdict =
    knee === undefined
      ? '  No level meets the goals.'
      : `  The last level with ${100 * goals.goodput} % of the answers within TTFT ${goals.ttft} ms and TPOT ${goals.tpot} ms: ${knee.load}`;
  return outputs(data, [table(header, rows), '', verdict, '', crossedThresholds(data)].join('\n'));
}
