/**
 * Concurrency × drafter × draft length, each for some seconds: where does which draft length pay?
 * Draft lengths are limits: to compare fixed ones, start the server with `--draft-tokens <the longest>`.
 *
 *   k6 run -e CONCURRENCY=1,2,4 -e DRAFTERS=dflash,none -e DRAFT_TOKENS=1,3 load-tests/sweep.ts      npm run load -- sweep …
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
import { keep } from './lib/thresholds.ts';
import type { Sampling } from './lib/types.ts';

const seconds = settings.number('LEVEL_SECONDS', 10);
const concurrency = settings.list('CONCURRENCY', '1,2,4').map(Number);
const PLAIN = 'none';
const graceSeconds = settings.number('GRACE_SECONDS', 5);

interface Variant {
  readonly name: string;
  readonly sampling: Sampling;
}

/** `none` has no draft length; an empty name is the server's default drafter. */
const variants: readonly Variant[] = settings.list('DRAFTERS', `,${PLAIN}`).flatMap((drafter): Variant[] => {
  const chosen: Sampling = drafter === '' ? {} : { drafter };
  if (drafter === PLAIN) return [{ name: PLAIN, sampling: chosen }];
  return settings.list('DRAFT_TOKENS', 'all').map((tokens) => ({
    name: `${drafter === '' ? 'default' : drafter}@${tokens}`,
    sampling: tokens === 'all' ? chosen : { ...chosen, draft_tokens: Number(tokens) },
  }));
});

const cells = concurrency.flatMap((vus, level) =>
  variants.map(({ name, sampling }, index) => {
    const position = level * variants.length + index;
    const scenario: Scenario = {
      executor: 'constant-vus',
      vus,
      duration: `${seconds}s`,
      startTime: `${position * (seconds + graceSeconds)}s`,
      gracefulStop: `${graceSeconds}s`,
      env: { CELL_SAMPLING: JSON.stringify(sampling) },
      tags: { load: String(vus), variant: name },
    };
    return { vus, variant: name, tags: { load: String(vus), variant: name }, scenario };
  }),
);

export const options: Options = {
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'count'],
  scenarios: Object.fromEntries(cells.map(({ scenario }, index) => [`cell_${index}`, scenario])),
  thresholds: {
    llm_errors: ['count==0'],
    ...Object.assign(
      {},
      ...cells.flatMap(({ tags }) => Object.entries(LEVEL_METRICS).map(([metric, of]) => keep(metric, tags, of))),
    ),
    // Whatever the load, what is drafted must be worth something.
    ...Object.fromEntries(
      variants
        .filter(({ name }) => name !== PLAIN)
        .map(({ name }) => [`spec_acceptance_length{variant:${name}}`, [`avg>${goals.acceptanceLength}`]]),
    ),
  },
};

const prompts = loadPrompts(() => open(PROMPTS));

export const setup = requireServer;

export default function cell(): void {
  chat(promptAt(prompts, exec.scenario.iterationInTest), { sampling: JSON.parse(__ENV['CELL_SAMPLING'] ?? '{}') as Sampling });
}

export function handleSummary(data: SummaryData): Record<string, string> {
  /** Tokens over the time in which they were made: all clients wait for an answer all the time, the last ones in the grace time. */
  const speed = (load: number, variant: string) => {
    const tags = { load: String(load), variant };
    const answers = figure(data, 'llm_e2e', tags, 'count');
    const clientSeconds = (figure(data, 'llm_e2e', tags, 'avg') * answers) / 1000;
    return answers === 0 ? 0 : (figure(data, 'llm_output_tokens', tags, 'count') * load) / clientSeconds;
  };
  const hasPlain = variants.some(({ name }) => name === PLAIN);
  const rows = cells.map(({ vus, variant, tags }) => {
    const plain = hasPlain ? speed(vus, PLAIN) : 0;
    return [
      String(vus),
      variant,
      speed(vus, variant).toFixed(1),
      plain === 0 ? '–' : `${(speed(vus, variant) / plain).toFixed(2)} ×`,
      milliseconds(figure(data, 'llm_ttft', tags, 'p(95)')),
      milliseconds(figure(data, 'llm_tpot', tags, 'p(95)')),
      acceptanceLength(figure(data, 'spec_acceptance_length', tags, 'avg')),
      variant === PLAIN ? '–' : `${(100 * figure(data, 'spec_acceptance_rate', tags, 'rate')).toFixed(1)} %`,
    ];
  });
  const header = ['clients', 'variant', 'tokens/s', 'over plain', 'TTFT p95 ms', 'TPOT p95 ms', 'AL', 'accepted'];
  return outputs(data, [table(header, rows), '', crossedThresholds(data)].join('\n'));
}
