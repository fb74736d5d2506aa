import { goals, settings } from './settings.ts';

type Thresholds = Record<string, string[]>;

/** Errors and latency: what every load test holds a server to. */
export function latencyThresholds(): Thresholds {
  return {
    llm_errors: ['count==0'],
    llm_ttft: [`p(95)<${goals.ttft}`],
    llm_tpot: [`p(95)<${goals.tpot}`],
    llm_goodput: [`rate>=${goals.goodput}`],
  };
}

/**
 * A drafter that is broken makes no answer wrong, only slower: so acceptance has a floor of its own. Where nothing is drafted
 * the floor is not reached either; plain decoding (`DRAFTER=none`) has none.
 */
export function acceptanceThresholds(): Thresholds {
  if (settings.drafter === 'none') return {};
  return {
    spec_acceptance_length: [`avg>${goals.acceptanceLength}`],
    spec_acceptance_rate: [`rate>${goals.acceptanceRate}`],
    'spec_accepted_at{position:0}': [`rate>${goals.firstAcceptance}`],
  };
}

/** A sub-metric is kept only if a threshold asks for it; one that always holds does. */
export function keep(metric: string, tags: Readonly<Record<string, string>>, aggregation: string): Thresholds {
  const inside = Object.entries(tags)
    .map(([tag, value]) => `${tag}:${value}`)
    .join(',');
  return { [`${metric}{${inside}}`]: [`${aggregation}>=0`] };
}
