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
  acceptanceLength,
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
  const name = `rate_${String(rate).replace('.', '_')}`;
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
  return { rate, load, name, scenario };
});

export const options: Options = {
  scenarios: Object.fromEntries(levels.map(({ name, scenario }) => [name, scenario])),
  thresholds: {
    ...Object.assign(
      {},
      ...levels.flatMap(({ load }) => Object.entries(LEVEL_METRICS).map(([metric, of]) => keep(metric, { load }, of))),
    ),
    // k6 tags what it drops with the name of the scenario, and with none of its tags.
    ...Object.assign({}, ...levels.map(({ name }) => keep('dropped_iterations', { scenario: name }, 'count'))),
    // The first level is one that the server must bear, all of it: what is cut off has no goodput.
    [`llm_goodput{load:${levels[0]?.load}}`]: [`rate>=${goals.goodput}`],
    [`iterations{scenario:${levels[0]?.name}}`]: [`count>=${goals.goodput * (levels[0]?.rate ?? 0) * seconds}`],
    ...acceptanceThresholds(),
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function ramp(): void {
  chat(promptAt(prompts, exec.scenario.iterationInTest));
}

interface LevelFigures {
  /** Questions that were due: asked, or dropped as no client was free to ask. */
  readonly due: number;
  readonly dropped: number;
  /** Still unanswered when the level and its pause were over. */
  readonly cut: number;
  /** Of those due, the share answered within the goals. */
  readonly goodput: number;
}

function levelFigures(data: SummaryData, { load, name }: (typeof levels)[number]): LevelFigures {
  const asked = figure(data, 'llm_requests', { load }, 'count');
  const dropped = figure(data, 'dropped_iterations', { scenario: name }, 'count');
  const good = figure(data, 'llm_goodput', { load }, 'passes');
  const due = asked + dropped;
  const cut = asked - good - figure(data, 'llm_goodput', { load }, 'fails');
  return { due, dropped, cut, goodput: due === 0 ? 0 : good / due };
}

export function handleSummary(data: SummaryData): Record<string, string> {
  const measured = levels.map((level) => ({ ...level, ...levelFigures(data, level) }));
  const knee = measured.filter(({ goodput, dropped, cut }) => goodput >= goals.goodput && dropped === 0 && cut === 0).at(-1);
  const rows = measured.map(({ load, rate, due, goodput, cut, dropped }) => [
    load,
    due.toFixed(0),
    `${(100 * goodput).toFixed(0)} %`,
    milliseconds(figure(data, 'llm_ttft', { load }, 'p(95)')),
    milliseconds(figure(data, 'llm_tpot', { load }, 'p(95)')),
    acceptanceLength(figure(data, 'spec_acceptance_length', { load }, 'avg')),
    figure(data, 'llm_errors', { load }, 'count').toFixed(0),
    cut.toFixed(0),
    dropped.toFixed(0),
    rate === knee?.rate ? '← knee' : '',
  ]);
  const header = ['load', 'due', 'goodput', 'TTFT p95 ms', 'TPOT p95 ms', 'AL', 'errors', 'cut off', 'dropped', ''];
  const verdict =
    knee === undefined
      ? '  No level meets the goals.'
      : `  The last level with ${100 * goals.goodput} % of the answers within TTFT ${goals.ttft} ms and TPOT ${goals.tpot} ms: ${knee.load}`;
  return outputs(data, [table(header, rows), '', verdict, '', crossedThresholds(data)].join('\n'));
}
