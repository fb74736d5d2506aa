/** What is measured of an answer, under one name however it was asked for. Times are in milliseconds. */
import { Counter, Rate, Trend } from 'k6/metrics';
import { goals, settings } from './settings.ts';
import type { Answer, Prompt, Sampling, Tags } from './types.ts';

/** Asked, whatever came of it: an answer that is cut off with its iteration shows nowhere else. */
const requests = new Counter('llm_requests');
/** To the first token. */
const ttft = new Trend('llm_ttft', true);
/** Between two deliveries; only a WebSocket shows it. */
const itl = new Trend('llm_itl', true);
/** Of each token: the gap before its delivery / the tokens in it. */
const itlPerToken = new Trend('llm_itl_per_token', true);
/** (end - first token) / (tokens - 1). */
const tpot = new Trend('llm_tpot', true);
const e2e = new Trend('llm_e2e', true);
const outputTokens = new Counter('llm_output_tokens');
/** Of one answer. */
const tokensPerSecond = new Trend('llm_tokens_per_second');
/** Answers that meet both goals; errors do not. */
const goodput = new Rate('llm_goodput');
/** By `type`: network, timeout, http_4xx, http_5xx, overloaded, stream, decode. */
const errors = new Counter('llm_errors');
/** Of a round with a draft: 1 + accepted. Its average is the pooled one, in which no answer counts for more than its rounds. */
const acceptanceLength = new Trend('spec_acceptance_length');
/** Of draft tokens: which were accepted. */
const acceptanceRate = new Rate('spec_acceptance_rate');
/** Of rounds whose draft had the `position` (from 0): in which it was accepted. */
const acceptedAt = new Rate('spec_accepted_at');
/** Rounds with a draft. */
const steps = new Counter('spec_steps');
/** Rounds without one, by `reason`. */
const disabledSteps = new Counter('spec_disabled_steps');

/** What was asked for; whether it is answered or not, its samples carry it. @param own of the scenario: load level, phase, … */
export function requestTags({ category }: Prompt, { drafter = settings.drafter }: Sampling, own: Tags): Tags {
  return { category, ...(drafter === '' ? {} : { drafter }), ...own };
}

/** Before it is sent. */
export function recordRequest(tags: Tags): void {
  requests.add(1, tags);
}

/** @param given as `requestTags` gives them; an answer names its drafter itself */
export function record(answer: Answer, given: Tags): void {
  const tags = { ...given, drafter: answer.speculation?.drafter ?? given['drafter'] ?? 'unknown' };
  if (answer.error !== null) {
    errors.add(1, { ...tags, type: answer.error.type });
    goodput.add(false, tags);
    return;
  }
  if (answer.ttft !== null) ttft.add(answer.ttft, tags);
  if (answer.tpot !== null) tpot.add(answer.tpot, tags);
  for (const { ms, tokens } of answer.gaps) {
    itl.add(ms, tags);
    for (let token = 0; token < tokens; token++) itlPerToken.add(ms / tokens, tags);
  }
  e2e.add(answer.e2e, tags);
  outputTokens.add(answer.tokens, tags);
  tokensPerSecond.add((answer.tokens * 1000) / answer.e2e, tags);
  goodput.add((answer.ttft ?? 0) <= goals.ttft && (answer.tpot ?? 0) <= goals.tpot, tags);
  recordSpeculation(answer, tags);
}

function recordSpeculation({ speculation }: Answer, tags: Tags): void {
  if (speculation === null) return;
  for (const [reason, rounds] of Object.entries(speculation.no_draft_rounds ?? {})) {
    disabledSteps.add(rounds, { ...tags, reason });
  }
  if (speculation.num_spec_steps === 0) return;
  steps.add(speculation.num_spec_steps, tags);
  for (let token = 0; token < speculation.num_draft_tokens; token++) {
    acceptanceRate.add(token < speculation.num_accepted_draft_tokens, tags);
  }
  for (const [length, histogram] of Object.entries(speculation.acceptance_histogram_by_draft_length)) {
    for (const [accepted, rounds] of histogram.entries()) {
      for (let round = 0; round < rounds; round++) {
        acceptanceLength.add(1 + accepted, tags);
        for (let position = 0; position < Number(length); position++) {
          acceptedAt.add(position < accepted, { ...tags, position: String(position) });
        }
      }
    }
  }
}
