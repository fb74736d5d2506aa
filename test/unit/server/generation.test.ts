import { describe, expect, test } from 'vitest';
import { AppError } from '../../../src/core/app-error.ts';
import { NO_RULES } from '../../../src/core/token-rules.ts';
import type { QueuedRequest } from '../../../src/engine/engine.ts';
import { createApp } from '../../../src/server/app.ts';
import { VOCAB_SIZE } from '../../support/fake-text.ts';
import { Gate } from '../../support/gate.ts';
import { until, within } from '../../support/labelled-timeout.ts';
import { createServerFixture, RANDOM_SEED, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';

interface Answer {
  readonly id: string;
  readonly choices: readonly { readonly index: number; readonly text: string; readonly finish_reason: string }[];
  readonly usage: unknown;
  readonly metrics: { readonly seed: number; readonly speculative_decoding: Record<string, unknown> | null } & Record<
    string,
    unknown
  >;
}

function setUp(options: ServerFixtureOptions = {}) {
  const fixture = createServerFixture(options);
  const app = createApp(fixture.options);
  const complete = async (body: object): Promise<Answer> => {
    const response = await post(app, '/v1/completions', body);
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  };
  return { ...fixture, app, complete };
}

describe('an answer with synthetic acceptance', () => {
  const engine = { info: { drafters: [{ name: 'synthetic', kind: 'synthetic', maxDraftTokens: 4, synthetic: true }] } };

  test('says so, whole and in every chunk', async () => {
    const { app, complete } = setUp({ engine });
    expect(await complete({ prompt: 'x' })).toMatchObject({ synthetic: true });
    const stream = await (await post(app, '/v1/completions', { prompt: 'x', stream: true })).text();
    const chunks = stream.split('\n\n').filter((event) => event.startsWith('data: {'));
    expect(chunks.length).toBeGreaterThan(1);
    for (const chunk of chunks) expect(chunk).toContain('"synthetic":true');
  });

  test('says nothing when it was made without', async () => {
    const { complete } = setUp({ engine });
    expect(await complete({ prompt: 'x', speculative: false })).not.toHaveProperty('synthetic');
  });
});

describe('a whole completion', () => {
  test('has the documented shape', async () => {
    const { complete } = setUp({ engine: { script: () => ({ text: 'abcdefgh', accepts: [2, 4] }) } });
    expect(await complete({ prompt: 'hello', max_tokens: 8, temperature: 0, request_id: 'r1', seed: 5 })).toEqual({
      id: 'cmpl-r1',
      object: 'text_completion',
      created: Math.floor(Date.UTC(2030, 0, 1) / 1000),
      model: 'fake-model',
      system_fingerprint: expect.stringMatching(/^fp_/),
      choices: [{ index: 0, text: 'abcdefgh', logprobs: null, finish_reason: 'length', stop_reason: null }],
      usage: { prompt_tokens: 5, completion_tokens: 8, total_tokens: 13, prompt_tokens_details: { cached_tokens: 0 } },
      metrics: {
        // Rounds: 4 drafted, 2 accepted; then only 4 tokens are left, 3 drafted, 3 accepted.
        speculative_decoding: {
          mean_acceptance_length: 3.5,
          draft_acceptance_rate: 5 / 7,
          acceptance_histogram: [0, 0, 1, 1, 0],
          acceptance_histogram_by_draft_length: { 3: [0, 0, 0, 1], 4: [0, 0, 1, 0, 0] },
          num_spec_steps: 2,
          num_accepted_draft_tokens: 5,
          num_draft_tokens: 7,
          num_spec_tokens: 4,
          drafter: 'oracle',
          no_draft_rounds: {},
          shortened_rounds: { 'near-max-tokens': 1 },
          drafter_error: null,
        },
        // Three steps of 10 ms, two drafts of 2 ms.
        time_to_first_token_ms: 10,
        queue_time_ms: 0,
        generation_time_ms: 34,
        mean_itl_ms: 24 / 7,
        tokens_per_second: 8000 / 34,
        seed: 5,
      },
    });
  });

  test('of a chat has the documented shape', async () => {
    const { app } = setUp({ engine: { script: () => ({ text: 'Yes.' }) } });
    const response = await post(app, '/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }], request_id: 'r1' });
    expect(await response.json()).toMatchObject({
      id: 'chatcmpl-r1',
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Yes.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
          stop_reason: null,
        },
      ],
      usage: { prompt_tokens: 21, completion_tokens: 5, total_tokens: 26 },
    });
  });

  test('takes its id from the body, else from the header, else makes one', async () => {
    const { app } = setUp();
    const id = async (body: object, header?: string) => {
      const headers = header === undefined ? {} : { 'x-request-id': header };
      return ((await (await post(app, '/v1/completions', { prompt: 'x', ...body }, { headers })).json()) as Answer).id;
    };
    expect(await id({ request_id: 'body' }, 'header')).toBe('cmpl-body');
    expect(await id({}, 'header')).toBe('cmpl-header');
    expect(await id({})).toMatch(/^cmpl-[0-9a-f]{32}$/);
  });
});

describe('statistics', () => {
  test.each(['none', 'summary', 'detailed'] as const)('are as configured: %s', async (level) => {
    const { complete } = setUp({ config: { perRequestSpecMetrics: level } });
    const { metrics } = await complete({ prompt: 'x' });
    expect('speculative_decoding' in metrics).toBe(level !== 'none');
    expect(metrics.speculative_decoding?.['per_step_accepted'] !== undefined).toBe(level === 'detailed');
  });

  test('are as the request wants them, before the configuration', async () => {
    const { complete } = setUp({ config: { perRequestSpecMetrics: 'none' } });
    const { metrics } = await complete({ prompt: 'x', spec_decode_metrics: 'detailed' });
    const { per_step_accepted: accepted, per_step_drafted: drafted } = metrics.speculative_decoding as Record<string, number[]>;
    expect(accepted).toEqual([2, 4, 0, 3, 1]);
    expect(drafted).toEqual([4, 4, 4, 4, 1]);
  });

  test('keep waiting apart from running', async () => {
    const { complete } = setUp({ engine: { info: { maxSequences: 1 } } });
    const [first, second] = await Promise.all([complete({ prompt: 'x' }), complete({ prompt: 'x' })]);
    const ownMs = first.metrics['generation_time_ms'] as number;
    expect(first.metrics['queue_time_ms']).toBe(0);
    expect(second.metrics).toMatchObject({
      queue_time_ms: ownMs,
      time_to_first_token_ms: ownMs + 10,
      generation_time_ms: ownMs,
      tokens_per_second: first.metrics['tokens_per_second'],
    });
  });

  test.each([{ n: 2 }, { prompt: ['x', 'y'] }])('are null for several answers, but the seed is told: %j', async (fields) => {
    const { complete } = setUp();
    const { metrics } = await complete({ prompt: 'x', ...fields });
    expect(metrics).toEqual({
      speculative_decoding: null,
      time_to_first_token_ms: null,
      queue_time_ms: null,
      generation_time_ms: null,
      mean_itl_ms: null,
      tokens_per_second: null,
      seed: RANDOM_SEED,
    });
  });
});

describe('what the engine is asked', () => {
  test('is what the request says', async () => {
    const { engine, complete } = setUp();
    await complete({
      prompt: [7, 8],
      max_tokens: 3,
      temperature: 0.5,
      top_p: 0.9,
      top_k: -1,
      min_p: 0.05,
      seed: 12,
      stop: ['a', 'b'],
      stop_token_ids: [9],
      ignore_eos: true,
      include_stop_str_in_output: true,
      skip_special_tokens: false,
      speculative: false,
      draft_tokens: 2,
      priority: 7,
      cache_salt: 'mine',
    });
    expect(engine.requests).toEqual([
      {
        id: expect.any(String),
        promptTokens: [7, 8],
        sampling: { temperature: 0.5, topP: 0.9, topK: 0, minP: 0.05, seed: 12n },
        maxTokens: 3,
        stopTokenIds: [9],
        stopStrings: ['a', 'b'],
        includeStopString: true,
        ignoreEos: true,
        skipSpecialTokens: false,
        shownTokens: [],
        drafter: 'none',
        draftTokens: 2,
        priority: 7,
        cacheSalt: 'mine',
        trace: false,
        rules: NO_RULES,
        logprobs: null,
        promptLogprobs: null,
      },
    ]);
  });

  test('follows the defaults of the model where the request says nothing', async () => {
    const { engine, complete } = setUp({ engine: { info: { samplingDefaults: { temperature: 0.6, topK: 20 } } } });
    await complete({ prompt: 'x' });
    await complete({ prompt: 'x', temperature: 0, top_k: 0 });
    expect(engine.requests.map(({ sampling }) => sampling)).toMatchObject([
      { temperature: 0.6, topP: 1, topK: 20, minP: 0 },
      { temperature: 0, topP: 1, topK: 0, minP: 0 },
    ]);
  });

  test('has another seed for each choice, and the first has that of the request', async () => {
    const { engine, complete } = setUp();
    const answer = await complete({ prompt: ['x', 'y'], n: 2, seed: 3, max_tokens: 64 });
    const seeds = engine.requests.map(({ sampling }) => sampling.seed);
    expect(seeds[0]).toBe(3n);
    expect(new Set(seeds).size).toBe(4);
    expect(answer.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    for (const { index, text } of answer.choices) expect(text).toContain(`drawn with ${seeds[index]}`);
  });

  test('can be repeated with the seed that the answer reports', async () => {
    const { complete } = setUp();
    const first = await complete({ prompt: 'x', max_tokens: 64 });
    const second = await complete({ prompt: 'x', max_tokens: 64, seed: first.metrics.seed });
    expect(second.choices).toEqual(first.choices);
  });

  test('has an id of its own even when two callers send the same', async () => {
    const { engine, complete } = setUp();
    await Promise.all([complete({ prompt: 'x', request_id: 'same' }), complete({ prompt: 'x', request_id: 'same' })]);
    expect(new Set(engine.requests.map(({ id }) => id)).size).toBe(2);
  });

  test('counts each prompt once however many answers it gets', async () => {
    const { complete } = setUp();
    expect((await complete({ prompt: ['abc', 'de'], n: 3, max_tokens: 1 })).usage).toMatchObject({
      prompt_tokens: 5,
      completion_tokens: 6,
    });
  });

  test('counts what was reused of a prompt once, as its first answer found it', async () => {
    const { complete } = setUp({
      engine: { script: ({ promptTokens }) => ({ text: 'a', cachedTokens: promptTokens.length - 1 }) },
    });
    const { usage } = await complete({ prompt: ['abc', 'de'], n: 3, max_tokens: 1 });
    expect(usage).toMatchObject({ prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 2 + 1 } });
  });
});

describe('a request that cannot be served', () => {
  test.each<readonly [string, object, number, string, string | null]>([
    ['another model', { prompt: 'x', model: 'gpt-4' }, 404, 'model_not_found', 'model'],
    ['a token that is none', { prompt: [1, VOCAB_SIZE] }, 400, 'invalid_value', 'prompt'],
    ['a stop token that is none', { prompt: 'x', stop_token_ids: [VOCAB_SIZE] }, 400, 'invalid_value', 'stop_token_ids'],
    ['a prompt without room for an answer', { prompt: 'x'.repeat(512) }, 400, 'context_length_exceeded', 'prompt'],
    [
      'options of a stream without one',
      { prompt: 'x', stream_options: { include_usage: true } },
      400,
      'invalid_value',
      'stream_options',
    ],
    [
      'running usage without usage',
      { prompt: 'x', stream: true, stream_options: { include_usage: false, continuous_usage_stats: true } },
      400,
      'invalid_value',
      'stream_options.continuous_usage_stats',
    ],
  ])('for %s says so', async (_, body, status, code, param) => {
    const { app } = setUp();
    const response = await post(app, '/v1/completions', body);
    expect(response.status).toBe(status);
    expect(await errorOf(response)).toMatchObject({ code, param });
  });

  test('adds no special tokens to a rendered chat, which has its own', async () => {
    const { app, engine } = setUp();
    await post(app, '/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] });
    await post(app, '/v1/completions', { prompt: 'hi' });
    expect(engine.encoded.map(({ addSpecialTokens }) => addSpecialTokens)).toEqual([false, true]);
  });

  test('names the messages when they are too long', async () => {
    const { app } = setUp();
    const response = await post(app, '/v1/chat/completions', { messages: [{ role: 'user', content: 'x'.repeat(600) }] });
    expect(await errorOf(response)).toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
  });

  test('for want of room is told when to come back', async () => {
    const gate = new Gate();
    const { app, engine } = setUp({ engine: { info: { maxSequences: 1 }, maxWaiting: 0, beforeStep: () => gate.opened } });
    const first = post(app, '/v1/completions', { prompt: 'x' });
    await until('the first request runs', () => engine.load().running === 1);
    const second = await post(app, '/v1/completions', { prompt: 'x' });
    gate.open();
    expect((await within('the first request ends', first)).status).toBe(200);
    expect(second.status).toBe(503);
    expect(second.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await errorOf(second)).toMatchObject({ type: 'overloaded_error', code: 'overloaded' });
  });

  test('stops its other answers when one of them fails', async () => {
    let asked = 0;
    const failing = { text: 'x', failsAt: { step: 0, error: new AppError('internal', 'scripted') } };
    const endless = { text: 'x'.repeat(400) };
    const { app, engine } = setUp({ engine: { script: () => (asked++ === 0 ? failing : endless) } });
    const response = await post(app, '/v1/completions', { prompt: 'x', n: 3, max_tokens: 400 });
    expect(response.status).toBe(500);
    expect(engine.load().running).toBe(0);
    // The others were in the middle of their first step.
    expect(engine.steps).toBe(0);
    expect(engine.finishes.map(({ reason }) => reason)).toEqual(['error', 'aborted', 'aborted']);
  });
});

describe('an engine that is shut down during an answer', () => {
  test('makes a whole answer unavailable', async () => {
    const gate = new Gate();
    const { app, engine } = setUp({ engine: { beforeStep: (_, step) => (step === 2 ? gate.opened : undefined) } });
    const response = post(app, '/v1/completions', { prompt: 'x' });
    await until('two steps ran', () => engine.steps === 2);
    const drained = engine.drain(AbortSignal.abort());
    gate.open();
    await drained;
    expect((await within('the response comes', response)).status).toBe(503);
  });

  test('ends a stream with an error', async () => {
    const gate = new Gate();
    const { app, engine } = setUp({ engine: { beforeStep: (_, step) => (step === 2 ? gate.opened : undefined) } });
    const response = await post(app, '/v1/completions', { prompt: 'x', stream: true });
    const text = response.text();
    await until('two steps ran', () => engine.steps === 2);
    const drained = engine.drain(AbortSignal.abort());
    gate.open();
    await drained;
    expect(await within('the stream ends', text)).toMatch(/data: {"error":{.*"code":"unavailable"}}\n\ndata: \[DONE\]\n\n$/);
  });
});

describe('a caller that goes away', () => {
  test.each([false, true])('frees the sequence (stream: %s)', async (stream) => {
    const gate = new Gate();
    const { app, engine, log, metrics } = setUp({
      engine: { beforeStep: (_, step) => (step === 2 ? gate.opened : undefined) },
    });
    const caller = new AbortController();
    const response = post(app, '/v1/completions', { prompt: 'x', stream }, { signal: caller.signal });
    const text = stream ? (await response).text() : response.then((whole) => whole.text());
    await until('two steps ran', () => engine.steps === 2);
    caller.abort();
    gate.open();
    await until('the sequence is free', () => engine.load().running === 0);
    expect(engine.steps).toBe(2);
    expect(engine.finishes.map(({ reason }) => reason)).toEqual(['aborted']);
    await within('the response ends', text);
    expect(log.at(-1)?.fields).toMatchObject({ errorCode: 'aborted', completionTokens: 4 });
    expect(log.some(({ level }) => level === 'error')).toBe(false);
    const counters = await metrics.render();
    expect(counters).toContain('request_success_total{model_name="fake-model",finished_reason="abort"} 1');
    expect(counters).not.toContain('request_errors_total{');
  });

  test('stops an answer whose stream it cancels', async () => {
    const { app, engine, log } = setUp({ engine: { script: () => ({ text: 'x'.repeat(400), accepts: [0] }) } });
    const response = await post(app, '/v1/completions', { prompt: 'x', max_tokens: 400, stream: true });
    const reader = response.body!.getReader();
    await within('the first chunk comes', reader.read());
    await within('the cancellation is taken', reader.cancel());
    expect(engine.load().running).toBe(0);
    expect(engine.steps).toBeLessThan(5);
    expect(log.at(-1)?.fields).toMatchObject({ status: 200, errorCode: 'aborted' });
  });

  test('is waited for: a stream that nobody reads makes no steps', async () => {
    const { app, engine } = setUp({ engine: { script: () => ({ text: 'x'.repeat(400), accepts: [0] }) } });
    const response = await post(app, '/v1/completions', { prompt: 'x', max_tokens: 400, stream: true });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(engine.steps).toBeLessThan(4);
    await response.body!.cancel();
  });
});

describe('choices that have no room together', () => {
  test('for their prompts are refused with these, too', async () => {
    const checkQueue = (requests: readonly QueuedRequest[]) => {
      if (requests.some(({ promptTokens }) => promptTokens.length > 3))
        throw new AppError('overloaded', 'Expected shorter ones');
    };
    const { app, engine } = setUp({ engine: { checkQueue } });
    expect((await post(app, '/v1/completions', { prompt: 'xxx' })).status).toBe(200);
    expect((await post(app, '/v1/completions', { prompt: 'xxxx' })).status).toBe(503);
    expect(engine.requests).toHaveLength(1);
  });

  const checkQueue = (requests: readonly unknown[]) => {
    if (requests.length > 3) throw new AppError('invalid_request', 'Expected fewer answers', { details: { param: 'n' } });
  };

  test.each([false, true])('are refused before any of them runs (stream %s)', async (stream) => {
    const { app, engine } = setUp({ engine: { checkQueue } });
    const response = await post(app, '/v1/completions', { prompt: ['x', 'y'], n: 2, stream });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param: 'n', message: 'Expected fewer answers' });
    expect(engine.requests).toEqual([]);
    expect(engine.encoded).toEqual([]);
  });
});
