import { describe, expect, test } from 'vitest';
import type { FinishEvent } from '../../src/core/decode-event.ts';
import type { RoundRecord } from '../../src/core/speculation-record.ts';
import { timings } from '../../src/server/dialects/llama-cpp.ts';
import { metaInfo, specTokensDetails } from '../../src/server/dialects/sglang.ts';
import { requestMetrics } from '../../src/server/request-metrics.ts';
import golden from './fixtures/acceptance/golden.json' with { type: 'json' };

function finishOf(steps: number[][], maxDraftTokens: number): FinishEvent {
  const rounds: RoundRecord[] = steps.map(([drafted, accepted, emitted]) => ({
    drafted: drafted!,
    accepted: accepted!,
    evaluated: Math.min(accepted! + 1, drafted!),
    emitted: emitted ?? accepted! + 1,
  }));
  return {
    type: 'finish',
    reason: 'stop',
    stopReason: null,
    promptTokens: 9,
    cachedTokens: 4,
    completionTokens: 1 + rounds.reduce((sum, { emitted }) => sum + emitted, 0),
    speculation: { drafter: 'x', maxDraftTokens, rounds, noDraft: {}, shortened: {}, drafterError: null },
    timing: { queueMs: 3, firstTokenMs: 13, totalMs: 113 },
  };
}

describe('statistics of hand-made traces in the dialect of', () => {
  const cases = golden.cases.map(({ name, requests, num_spec_tokens: limit, expected }) => ({
    name,
    limit,
    expected,
    finishes: (requests as number[][][]).map((steps) => finishOf(steps, limit)),
  }));

  test.each(cases.filter(({ finishes }) => finishes.length === 1))('vLLM: $name', ({ finishes, limit, expected }) => {
    const { speculative_decoding: told } = requestMetrics(finishes, { level: 'detailed', seed: 0 });
    const { rounds } = finishes[0]!.speculation;
    const drafts = rounds.filter(({ drafted }) => drafted > 0);
    expect(told).toMatchObject({
      // Where nothing was drafted the arithmetic has no value, and vLLM's readers expect that of drafts without use.
      mean_acceptance_length: expected.mean_acceptance_length ?? 1,
      draft_acceptance_rate: expected.draft_acceptance_rate ?? 0,
      acceptance_histogram: expected.acceptance_histogram,
      acceptance_histogram_by_draft_length: expected.acceptance_histogram_by_draft_length,
      num_spec_steps: expected.num_drafts,
      num_accepted_draft_tokens: expected.num_accepted_tokens,
      num_draft_tokens: expected.num_draft_tokens,
      num_spec_tokens: limit,
      per_step_accepted: drafts.map(({ accepted }) => accepted),
      per_step_drafted: drafts.map(({ drafted }) => drafted),
    });
  });

  test.each(cases)('SGLang: $name', ({ finishes, limit, expected }) => {
    const details = specTokensDetails(finishes.map(({ speculation }) => speculation));
    if (expected.num_drafts === 0) {
      expect(details).toBeNull();
      expect(metaInfo(finishes[0]!, 'id')).not.toHaveProperty('spec_verify_ct');
      return;
    }
    expect(details).toEqual({
      spec_verify_ct: expected.num_drafts,
      spec_accept_length: expected.completion_per_verify,
      spec_accept_rate: expected.num_accepted_tokens / (expected.num_drafts * limit),
      spec_num_correct_drafts: expected.num_accepted_tokens,
      spec_num_proposed_drafts: expected.num_draft_tokens,
      spec_correct_drafts_histogram: expected.acceptance_histogram,
    });
    if (finishes.length > 1) return;
    expect(metaInfo(finishes[0]!, 'id')).toEqual({
      ...details,
      id: 'id',
      finish_reason: { type: 'stop', matched: null },
      prompt_tokens: 9,
      completion_tokens: expected.completion_tokens,
      cached_tokens: 4,
      e2e_latency: 0.113,
      spec_accept_token_num: expected.num_accepted_tokens,
      spec_draft_token_num: expected.num_draft_tokens,
      spec_accept_histogram: expected.acceptance_histogram,
    });
  });

  test.each(cases.filter(({ finishes }) => finishes.length === 1))('llama.cpp: $name', ({ finishes, expected }) => {
    expect(timings(finishes[0]!)).toEqual({
      cache_n: 4,
      prompt_n: 5,
      prompt_ms: 10,
      prompt_per_token_ms: 2,
      prompt_per_second: 500,
      predicted_n: expected.completion_tokens,
      predicted_ms: 100,
      predicted_per_token_ms: 100 / expected.completion_tokens,
      predicted_per_second: expected.completion_tokens * 10,
      ...(expected.num_drafts === 0
        ? {}
        : { draft_n: expected.num_draft_tokens, draft_n_accepted: expected.num_accepted_tokens }),
    });
  });
});
