import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { timings } from '../../../src/server/dialects/llama-cpp.ts';
import type { FakeScript } from '../../support/fake-engine.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { createServerFixture } from '../../support/server-fixture.ts';
import { post } from '../../support/server-requests.ts';

type Json = Readonly<Record<string, unknown>>;

function setUp(script: FakeScript = { text: 'abcdefgh', accepts: [2, 4], cachedTokens: 1 }) {
  const app = createApp(createServerFixture({ engine: { script: () => script } }).options);
  const ask = (fields: object) => post(app, '/v1/completions', { prompt: 'hello', max_tokens: 8, temperature: 0, ...fields });
  return {
    complete: async (fields: object = {}) => (await (await ask(fields)).json()) as Json,
    stream: async (fields: object = {}) => ssePayloads(await (await ask({ stream: true, ...fields })).text()),
  };
}

// Rounds: 4 drafted, 2 accepted; then only 4 tokens are left, 3 drafted, 3 accepted.
const SPEC = {
  spec_verify_ct: 2,
  spec_accept_length: 4,
  spec_accept_rate: 5 / 8,
  spec_num_correct_drafts: 5,
  spec_num_proposed_drafts: 7,
  spec_correct_drafts_histogram: [0, 0, 1, 1, 0],
};

describe("SGLang's dialect", () => {
  test('has meta_info on each choice', async () => {
    const answer = await setUp().complete({ return_meta_info: true, n: 2, request_id: 'r1' });
    const meta = {
      id: 'cmpl-r1',
      finish_reason: { type: 'length', length: 8 },
      prompt_tokens: 5,
      completion_tokens: 8,
      cached_tokens: 1,
      e2e_latency: expect.any(Number),
      ...SPEC,
      spec_accept_token_num: 5,
      spec_draft_token_num: 7,
      spec_accept_histogram: [0, 0, 1, 1, 0],
    };
    expect((answer['choices'] as Json[]).map(({ meta_info: told }) => told)).toEqual([meta, meta]);
  });

  test('has meta_info on the chunk that ends a choice', async () => {
    const chunks = await setUp().stream({ return_meta_info: true, stop: 'c' });
    const told = chunks.map((chunk) => (chunk['choices'] as Json[])[0]!['meta_info']);
    expect(told.slice(0, -1).every((meta) => meta === undefined)).toBe(true);
    expect(told.at(-1)).toMatchObject({ finish_reason: { type: 'stop', matched: 'c' }, spec_verify_ct: 1 });
  });

  test.each([{}, { stream_options: { include_usage: true } }])('has sglext in a last chunk of its own: %j', async (fields) => {
    const chunks = await setUp().stream({ return_spec_tokens_details: true, ...fields });
    expect(chunks.at(-1)).toMatchObject({ choices: [], sglext: { spec_tokens_details: SPEC } });
    expect(chunks.filter((chunk) => 'sglext' in chunk)).toHaveLength(1);
  });

  test('pools all answers in sglext, and says nothing without speculation', async () => {
    const pooled = await setUp().complete({ return_spec_tokens_details: true, n: 2 });
    expect(pooled['sglext']).toMatchObject({ spec_tokens_details: { spec_verify_ct: 4, spec_accept_length: 4 } });
    const plain = await setUp().complete({ return_spec_tokens_details: true, return_meta_info: true, speculative: false });
    expect(plain['sglext']).toEqual({ spec_tokens_details: null });
    expect((plain['choices'] as Json[])[0]!['meta_info']).not.toHaveProperty('spec_verify_ct');
  });
});

describe("llama.cpp's dialect", () => {
  // Three steps of 10 ms, two drafts of 2 ms.
  const told = {
    cache_n: 1,
    prompt_n: 4,
    prompt_ms: 10,
    prompt_per_token_ms: 2.5,
    prompt_per_second: 400,
    predicted_n: 8,
    predicted_ms: 24,
    predicted_per_token_ms: 3,
    predicted_per_second: 8000 / 24,
    draft_n: 7,
    draft_n_accepted: 5,
  };

  test('has timings, whole and in the last chunk', async () => {
    expect((await setUp().complete({ timings_per_token: true }))['timings']).toEqual(told);
    for (const fields of [{}, { stream_options: { include_usage: true } }]) {
      const chunks = await setUp().stream({ timings_per_token: true, ...fields });
      expect(chunks.at(-1)!['timings']).toEqual(told);
      expect(chunks.filter((chunk) => 'timings' in chunk)).toHaveLength(1);
    }
  });

  test('has no drafts where there was no speculation, and nothing for several answers', async () => {
    const plain = (await setUp().complete({ timings_per_token: true, speculative: false }))['timings'];
    expect(plain).not.toHaveProperty('draft_n');
    expect((await setUp().complete({ timings_per_token: true, n: 2 }))['timings']).toBeNull();
  });

  test('has no rate without a divisor', () => {
    const speculation = { drafter: 'none', maxDraftTokens: 0, rounds: [], noDraft: {}, shortened: {}, drafterError: null };
    const finish = {
      type: 'finish',
      reason: 'stop',
      stopReason: null,
      promptTokens: 3,
      cachedTokens: 3,
      completionTokens: 1,
      speculation,
      timing: { queueMs: 0, firstTokenMs: 5, totalMs: 5 },
    } as const;
    expect(timings(finish)).toMatchObject({ prompt_per_token_ms: null, predicted_per_second: null });
  });
});

test.each(['abcdefgh', ''])('an answer that was to have no tokens has none in any dialect; it would begin %j', async (text) => {
  const fields = { echo: true, max_tokens: 0, return_meta_info: true, timings_per_token: true };
  const whole = await setUp({ text }).complete(fields);
  const streamed = (await setUp({ text }).stream(fields)).at(-1)!;
  for (const answer of [whole, streamed]) {
    expect((answer['choices'] as Json[])[0]).toMatchObject({
      finish_reason: 'length',
      meta_info: { finish_reason: { type: 'length', length: 0 }, completion_tokens: 0 },
    });
    expect(answer).toMatchObject({
      timings: { prompt_ms: 10, predicted_n: 0, predicted_ms: 0 },
      metrics: { tokens_per_second: 0, time_to_first_token_ms: null },
    });
  }
  expect(whole['usage']).toMatchObject({ completion_tokens: 0 });
});

test('nothing of a dialect is told unless it is asked for', async () => {
  const answer = await setUp().complete();
  for (const name of ['sglext', 'timings', 'trace']) expect(answer).not.toHaveProperty(name);
  expect((answer['choices'] as Json[])[0]).not.toHaveProperty('meta_info');
});

describe('readers that reject contradictions', () => {
  const lengths = fc.array(fc.nat(4), { minLength: 1, maxLength: 6 });

  test('find none in metrics.speculative_decoding', async () => {
    await fc.assert(
      fc.asyncProperty(lengths, lengths, fc.integer({ min: 1, max: 60 }), async (accepts, proposes, tokens) => {
        const { complete } = setUp({ text: 'x'.repeat(80), accepts, proposes });
        const answer = await complete({ max_tokens: tokens, spec_decode_metrics: 'detailed' });
        const told = (answer['metrics'] as { speculative_decoding: Told }).speculative_decoding;
        const { completion_tokens: completionTokens } = answer['usage'] as { completion_tokens: number };
        const sum = (list: readonly number[]) => list.reduce((total, value) => total + value, 0);
        expect(sum(told.acceptance_histogram)).toBe(told.num_spec_steps);
        expect(sum(told.acceptance_histogram.map((count, accepted) => count * accepted))).toBe(told.num_accepted_draft_tokens);
        expect(told.acceptance_histogram).toHaveLength(told.num_spec_tokens + 1);
        expect(told.per_step_accepted).toHaveLength(told.num_spec_steps);
        expect(sum(told.per_step_accepted)).toBe(told.num_accepted_draft_tokens);
        expect(sum(told.per_step_drafted)).toBe(told.num_draft_tokens);
        expect(told.per_step_accepted.every((accepted, step) => accepted <= told.per_step_drafted[step]!)).toBe(true);
        expect(told.num_draft_tokens).toBeLessThanOrEqual(told.num_spec_steps * told.num_spec_tokens);
        expect(told.num_accepted_draft_tokens).toBeLessThan(completionTokens);
        if (told.num_spec_steps === 0) return;
        expect(told.mean_acceptance_length).toBeCloseTo(1 + told.num_accepted_draft_tokens / told.num_spec_steps, 12);
        expect(told.draft_acceptance_rate).toBeCloseTo(told.num_accepted_draft_tokens / told.num_draft_tokens, 12);
      }),
      { numRuns: 60 },
    );
  });

  interface Told {
    readonly mean_acceptance_length: number;
    readonly draft_acceptance_rate: number;
    readonly acceptance_histogram: readonly number[];
    readonly num_spec_steps: number;
    readonly num_accepted_draft_tokens: number;
    readonly num_draft_tokens: number;
    readonly num_spec_tokens: number;
    readonly per_step_accepted: readonly number[];
    readonly per_step_drafted: readonly number[];
  }
});
