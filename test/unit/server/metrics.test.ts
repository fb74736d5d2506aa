import { describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { createServerMetrics } from '../../../src/server/metrics.ts';
import { Gate } from '../../support/gate.ts';
import { until } from '../../support/labelled-timeout.ts';
import { parsePrometheus, sumOf } from '../../support/prometheus-text.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { type ReconcilableResponse, reconcileMetrics } from '../../support/reconcile-metrics.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { post } from '../../support/server-requests.ts';

function setUp(options: ServerFixtureOptions = {}) {
  const fixture = createServerFixture(options);
  const app = createApp(fixture.options);
  const scrape = async () => await (await app.request('/metrics')).text();
  return { ...fixture, app, scrape };
}

describe('/metrics', () => {
  test('counts drafts as vLLM does: rounds without a draft are not among them', async () => {
    const { app, scrape } = setUp({ engine: { script: () => ({ text: 'abcdefghijkl', accepts: [2, 4], proposes: [4, 0] }) } });
    await post(app, '/v1/completions', { prompt: 'xyz', max_tokens: 9, temperature: 0 });
    const samples = parsePrometheus(await scrape());
    const count = (name: string, labels = {}) => sumOf(samples, `blockdraft:${name}`, { model_name: 'fake-model', ...labels });
    // 1 | 4 drafted, 2 accepted | none | 4 drafted (of 4 left 3 may be), 2 accepted | 1 left
    expect(count('spec_decode_num_drafts_total')).toBe(2);
    expect(count('spec_decode_num_draft_tokens_total')).toBe(4 + 3);
    expect(count('spec_decode_num_evaluated_tokens_total')).toBe(3 + 3);
    expect(count('spec_decode_num_accepted_tokens_total')).toBe(2 + 2);
    expect([0, 1, 2, 3].map((position) => count('spec_decode_num_accepted_tokens_per_pos_total', { position }))).toEqual([
      2, 2, 0, 0,
    ]);
    expect([0, 1, 2, 3].map((position) => count('spec_decode_num_proposed_tokens_per_pos_total', { position }))).toEqual([
      2, 2, 2, 1,
    ]);
    expect(count('spec_decode_rounds_without_draft_total', { reason: 'no-proposal' })).toBe(1);
    expect(count('spec_decode_rounds_without_draft_total', { reason: 'near-max-tokens' })).toBe(1);
    expect(count('prompt_tokens_total')).toBe(3);
    expect(count('generation_tokens_total')).toBe(9);
    expect(count('request_success_total', { finished_reason: 'length' })).toBe(1);
  });

  test('counts prompt tokens that were looked up, found and computed', async () => {
    const { app, scrape } = setUp({ engine: { script: () => ({ text: 'a', cachedTokens: 2 }) } });
    await post(app, '/v1/completions', { prompt: 'xyz', max_tokens: 1, temperature: 0 });
    const samples = parsePrometheus(await scrape());
    const count = (name: string) => sumOf(samples, `blockdraft:${name}`);
    expect(['prefix_cache_queries_total', 'prefix_cache_hits_total', 'prompt_tokens_total'].map(count)).toEqual([3, 2, 1]);
  });

  test('has each histogram of a finished request', async () => {
    const { app, scrape } = setUp({ engine: { script: () => ({ text: 'abcdef', accepts: [1] }) } });
    await post(app, '/v1/completions', { prompt: 'xyz', max_tokens: 5, temperature: 0 });
    const samples = parsePrometheus(await scrape());
    const histogram = (name: string) => [sumOf(samples, `blockdraft:${name}_count`), sumOf(samples, `blockdraft:${name}_sum`)];
    // Steps: the prompt's 10 ms, then two rounds of 12 ms with 2 tokens each.
    expect(histogram('time_to_first_token_seconds')).toEqual([1, 0.01]);
    expect(histogram('inter_token_latency_seconds')).toEqual([2, 0.024]);
    expect(histogram('request_time_per_output_token_seconds')).toEqual([1, 0.006]);
    expect(histogram('e2e_request_latency_seconds')).toEqual([1, 0.034]);
    expect(histogram('request_queue_time_seconds')).toEqual([1, 0]);
    expect(histogram('request_inference_time_seconds')).toEqual([1, 0.034]);
    expect(histogram('request_prefill_time_seconds')).toEqual([1, 0.01]);
    expect(histogram('request_decode_time_seconds')).toEqual([1, 0.024]);
    expect(histogram('iteration_tokens_total')).toEqual([3, 3 + 5]);
    expect(histogram('request_prompt_tokens')).toEqual([1, 3]);
    expect(histogram('request_generation_tokens')).toEqual([1, 5]);
    expect(histogram('step_seconds')).toEqual([3, 0.03]);
    expect(histogram('draft_seconds')).toEqual([2, 0.004]);
  });

  test('shows counters and loads while a request runs', async () => {
    const gate = new Gate();
    const { app, engine, scrape } = setUp({ engine: { beforeStep: (_, step) => (step === 2 ? gate.opened : undefined) } });
    const running = post(app, '/v1/completions', { prompt: 'xyz' });
    await until('two steps ran', () => engine.steps === 2);
    const samples = parsePrometheus(await scrape());
    gate.open();
    await running;
    expect(sumOf(samples, 'blockdraft:spec_decode_num_draft_tokens_total')).toBe(4);
    expect(sumOf(samples, 'blockdraft:generation_tokens_total')).toBe(4);
    expect(sumOf(samples, 'blockdraft:num_requests_running')).toBe(1);
    expect(sumOf(samples, 'blockdraft:kv_cache_usage_perc')).toBeCloseTo(3 / (512 * 8), 10);
    const after = parsePrometheus(await scrape());
    expect(sumOf(after, 'blockdraft:num_requests_running')).toBe(0);
    expect(sumOf(after, 'blockdraft:kv_cache_usage_perc')).toBe(0);
  });

  test('counts aborted answers and errors apart', async () => {
    const { app, scrape } = setUp({ engine: { script: () => ({ text: 'x'.repeat(300) }) } });
    const response = await post(app, '/v1/completions', { prompt: 'x', stream: true });
    await response.body!.cancel();
    await post(app, '/v1/completions', { prompt: 'x', foo: 1 });
    const samples = parsePrometheus(await scrape());
    expect(sumOf(samples, 'blockdraft:request_success_total', { finished_reason: 'abort' })).toBe(1);
    expect(sumOf(samples, 'blockdraft:request_errors_total', { code: 'unknown_parameter' })).toBe(1);
  });

  test('counts when steps have to serve fewer sequences', async () => {
    const metrics = createServerMetrics({ modelName: 'm', version: '1', load: () => null, processMetrics: false });
    metrics.onFewerSequences?.(2, 'no memory');
    expect(sumOf(parsePrometheus(await metrics.render()), 'blockdraft:step_sequence_reductions_total')).toBe(1);
  });

  test('says what runs, and how the process does', async () => {
    const { app, scrape } = setUp({ processMetrics: true });
    const text = await scrape();
    expect(text).toContain(
      `blockdraft:build_info{model_name="fake-model",version="9.9.9",node_version="${process.version}"} 1`,
    );
    expect(text).toContain('process_resident_memory_bytes');
    expect((await app.request('/metrics')).headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  });

  test('says of every value that drafts are kept by given rates, where they are', async () => {
    const metrics = createServerMetrics({
      ...{ modelName: 'm', version: '1', load: () => null, vllmAliases: true, synthetic: true, processMetrics: false },
    });
    const values = (await metrics.render()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(values.filter((line) => !line.includes('synthetic="true"'))).toEqual([]);
    expect(values).toContain('vllm:spec_decode_num_drafts_total{model_name="m",synthetic="true"} 0');
    expect(await setUp().scrape()).not.toContain('synthetic="');
  });

  test('has every counter from the start, at 0', async () => {
    const text = await setUp().scrape();
    for (const name of ['spec_decode_num_drafts_total', 'spec_decode_num_accepted_tokens_total', 'generation_tokens_total']) {
      expect(text).toContain(`blockdraft:${name}{model_name="fake-model"} 0`);
    }
  });
});

describe('the aliases under vLLM names', () => {
  test('are absent unless asked for', async () => {
    expect(await setUp().scrape()).not.toContain('vllm:');
  });

  test('repeat exactly the metrics that vLLM has', async () => {
    const { app, scrape } = setUp({ vllmAliases: true });
    await post(app, '/v1/completions', { prompt: 'x' });
    const samples = parsePrometheus(await scrape());
    const names = (prefix: string) =>
      new Map(
        [...samples]
          .filter(([series]) => series.startsWith(prefix))
          .map(([series, value]) => [series.slice(prefix.length), value]),
      );
    const own =
      /^(spec_decode_num_evaluated|spec_decode_num_proposed|spec_decode_rounds_|request_errors|step_|synthetic_|draft_|drafter_|shadow_|self_audits|build_info)/;
    const expected = new Map([...names('blockdraft:')].filter(([series]) => !own.test(series)));
    expect(names('vllm:')).toEqual(expected);
    expect(expected.get('spec_decode_num_drafts_total{model_name="fake-model"}')).toBeGreaterThan(0);
    expect(expected.has('kv_cache_usage_perc{model_name="fake-model"}')).toBe(true);
  });

  test('leave a text in which each metric is declared once', async () => {
    const declared = (await setUp({ vllmAliases: true }).scrape()).split('\n').filter((line) => line.startsWith('# TYPE'));
    expect(new Set(declared).size).toBe(declared.length);
  });
});

describe('per-request statistics', () => {
  const scripts = [
    { text: 'A long enough answer to be cut by nothing.', accepts: [2, 4, 0, 3], proposes: [4, 4, 0, 2] },
    { text: 'Short', accepts: [4] },
    { text: 'An answer whose drafter gives up on the way', accepts: [1], drafterFailsAt: 3 },
    { text: 'One that a stop string ends, in a block', accepts: [4] },
  ];
  const bodies = [
    { max_tokens: 100 },
    { max_tokens: 2 },
    { max_tokens: 30, draft_tokens: 2 },
    { max_tokens: 40, stop: 'string' },
    { max_tokens: 20, speculative: false },
  ];

  test('of whole and streamed answers, run together, sum up to the counters', async () => {
    const { app, scrape } = setUp({ engine: { script: ({ promptTokens }) => scripts[promptTokens.length % scripts.length]! } });
    const before = await scrape();
    const asked = scripts.flatMap((_, index) =>
      bodies.map((body) => ({ temperature: 0, ...body, prompt: 'x'.repeat(index + 4) })),
    );
    const responses = await Promise.all(
      asked.map(async (body, index): Promise<ReconcilableResponse> => {
        if (index % 2 === 0) return (await (await post(app, '/v1/completions', body)).json()) as ReconcilableResponse;
        const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
        const payloads = ssePayloads(await (await post(app, '/v1/completions', streamed)).text());
        return payloads.at(-1) as unknown as ReconcilableResponse;
      }),
    );
    const after = await scrape();
    expect(reconcileMetrics(before, after, responses)).toEqual([]);
    expect(sumOf(parsePrometheus(after), 'blockdraft:spec_decode_num_accepted_tokens_total')).toBeGreaterThan(50);
    expect(reconcileMetrics(before, after, responses.slice(1))).not.toEqual([]);
  });
});
