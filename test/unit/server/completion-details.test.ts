import { describe, expect, test } from 'vitest';
import { AbortedError } from '../../../src/core/aborted-error.ts';
import { AppError } from '../../../src/core/app-error.ts';
import { createApp } from '../../../src/server/app.ts';
import { VOCAB_SIZE } from '../../support/fake-text.ts';
import { Gate } from '../../support/gate.ts';
import { joinChoices } from '../../support/join-chunks.ts';
import { ssePayloads } from '../../support/read-sse.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';
import { STREAM_VECTORS } from './stream-vectors.ts';

interface Answer {
  readonly choices: readonly Readonly<Record<string, unknown>>[];
  readonly usage: Readonly<Record<string, unknown>>;
}

function setUp(options: ServerFixtureOptions = {}) {
  const fixture = createServerFixture(options);
  const app = createApp(fixture.options);
  const complete = async (body: object): Promise<Answer> => {
    const response = await post(app, '/v1/completions', { prompt: 'x', temperature: 0, ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as Answer;
  };
  return { ...fixture, app, complete };
}

const script = (text: string) => ({ script: () => ({ text, accepts: [2, 0, 4] }) });

describe('logprobs of a completion', () => {
  test('have the documented shape', async () => {
    const { complete } = setUp({ engine: script('aé') });
    const { choices } = await complete({ logprobs: 2 });
    // Of the fake engine: rank 1 at even places, rank 3 at odd ones; each rank has half a unit less.
    expect(choices).toEqual([
      {
        index: 0,
        text: 'aé',
        logprobs: {
          tokens: ['<97>', '<195>', '<169>', '<256>'],
          token_logprobs: [-0.5, -1.5, -0.5, -1.5],
          top_logprobs: [
            { '<97>': -0.5, '<98>': -1 },
            { '<195>': -1.5, '<196>': -0.5, '<197>': -1 },
            { '<169>': -0.5, '<170>': -1 },
            { '<256>': -1.5, '<257>': -0.5, '<258>': -1 },
          ],
          // Both bytes of é begin in the second character; the end token has no text.
          text_offset: [0, 1, 1, 2],
        },
        finish_reason: 'stop',
        stop_reason: null,
      },
    ]);
  });

  test('of no rivals tell each token alone', async () => {
    const { complete } = setUp({ engine: script('a') });
    expect((await complete({ logprobs: 0, max_tokens: 1 })).choices[0]!['logprobs']).toMatchObject({
      top_logprobs: [{ '<97>': -0.5 }],
    });
  });

  test('write tokens as ids on request, and a special token where the text has it', async () => {
    const { complete } = setUp({ engine: script('a') });
    const answer = await complete({
      logprobs: 0,
      return_tokens_as_token_ids: true,
      skip_special_tokens: false,
      ignore_eos: true,
      max_tokens: 3,
    });
    expect(answer.choices[0]).toMatchObject({
      text: 'a<|end|>a',
      logprobs: { tokens: ['token_id:97', 'token_id:256', 'token_id:97'], text_offset: [0, 1, 8] },
    });
  });

  test('are absent unless asked for', async () => {
    const { complete } = setUp();
    expect((await complete({})).choices[0]).toEqual({
      index: 0,
      text: expect.any(String),
      logprobs: null,
      finish_reason: expect.any(String),
      stop_reason: null,
    });
  });

  test('are refused when they are too many together', async () => {
    const { app } = setUp({ engine: { info: { maxContext: 4096, maxSequences: 128 } } });
    const most = { prompt: 'x', n: 128, max_tokens: 390, logprobs: 20 };
    expect((await post(app, '/v1/completions', most)).status).toBe(200);
    const response = await post(app, '/v1/completions', { ...most, max_tokens: 391 });
    expect(await errorOf(response)).toMatchObject({ param: 'logprobs', code: 'invalid_value' });
    const ofPrompts = { prompt: new Array(4000).fill(1), n: 128, max_tokens: 1, prompt_logprobs: 20 };
    expect(await errorOf(await post(app, '/v1/completions', ofPrompts))).toMatchObject({ param: 'prompt_logprobs' });
  });
});

describe('logprobs of a prompt', () => {
  test('have the documented shape', async () => {
    const { complete } = setUp({ engine: script('a') });
    const { choices } = await complete({ prompt: 'hi!', prompt_logprobs: 1 });
    expect(choices[0]!['logprobs']).toBeNull();
    expect(choices[0]!['prompt_logprobs']).toEqual([
      null,
      {
        105: { logprob: -1.5, rank: 3, decoded_token: '<105>' },
        106: { logprob: -0.5, rank: 1, decoded_token: '<106>' },
      },
      { 33: { logprob: -0.5, rank: 1, decoded_token: '<33>' } },
    ]);
  });

  test('of no rivals tell each token alone', async () => {
    const { complete } = setUp({ engine: script('a') });
    const { choices } = await complete({ prompt: 'hi!', prompt_logprobs: 0, echo: true, logprobs: 3 });
    expect(choices[0]!['prompt_logprobs']).toEqual([
      null,
      { 105: { logprob: -1.5, rank: 3, decoded_token: '<105>' } },
      { 33: { logprob: -0.5, rank: 1, decoded_token: '<33>' } },
    ]);
    const { top_logprobs: top } = choices[0]!['logprobs'] as { top_logprobs: (object | null)[] };
    expect(top.slice(0, 3).map((rivals) => rivals && Object.keys(rivals).length)).toEqual([null, 3, 3]);
  });
});

describe('an echo', () => {
  test('begins the text with the prompt, whose first token nothing precedes', async () => {
    const { complete } = setUp({ engine: script('ab') });
    const { choices, usage } = await complete({ prompt: 'hi', echo: true, logprobs: 0, max_tokens: 1 });
    expect(choices[0]).toMatchObject({
      text: 'hia',
      logprobs: {
        tokens: ['<104>', '<105>', '<97>'],
        token_logprobs: [null, -1.5, -0.5],
        top_logprobs: [null, { '<105>': -1.5 }, { '<97>': -0.5 }],
        text_offset: [0, 1, 2],
      },
    });
    expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 1 });
  });

  test('of max_tokens 0 is the prompt alone', async () => {
    const { complete, engine } = setUp({ engine: script('ab') });
    const { choices, usage } = await complete({ prompt: ['hi', 'yo'], echo: true, logprobs: 0, max_tokens: 0 });
    expect(choices).toMatchObject([
      { text: 'hi', finish_reason: 'length', stop_reason: null, logprobs: { token_logprobs: [null, -1.5] } },
      { text: 'yo', finish_reason: 'length' },
    ]);
    expect(usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 0, total_tokens: 4 });
    expect(engine.requests.map(({ maxTokens }) => maxTokens)).toEqual([1, 1]);
  });

  test('of token ids is their text', async () => {
    const { complete } = setUp({ engine: script('b') });
    expect((await complete({ prompt: [97, 257], echo: true })).choices[0]!['text']).toBe('ab');
    const shown = await complete({ prompt: [97, 257], echo: true, skip_special_tokens: false });
    expect(shown.choices[0]!['text']).toBe('a<|im_start|>b');
  });
});

describe('token ids', () => {
  test('come with the choice that they belong to', async () => {
    const { complete } = setUp({ engine: script('ab') });
    const { choices } = await complete({ prompt: ['x', 'yz'], return_token_ids: true });
    expect(choices).toMatchObject([
      { token_ids: [97, 98, 256], prompt_token_ids: [120] },
      { token_ids: [97, 98, 256], prompt_token_ids: [121, 122] },
    ]);
  });
});

describe('a stream', () => {
  const vectors = STREAM_VECTORS.filter(({ path, expected }) => path === '/v1/completions' && expected.errorCode === undefined);

  test.each(vectors)('joins to the whole answer: $name', async ({ body, script: play, info }) => {
    const answer = async (fields: object) => {
      const { options } = createServerFixture({ engine: { script: () => play, info: info ?? {} } });
      const { stream_options: _, ...rest } = body;
      return post(createApp(options), '/v1/completions', { ...rest, ...fields });
    };
    const whole = (await (await answer({})).json()) as Answer;
    const chunks = ssePayloads(await (await answer({ stream: true })).text());
    expect(joinChoices(chunks)).toEqual(whole.choices);
  });

  test('tells tokens whose text is held back when they come, exactly once', async () => {
    const { app } = setUp({ engine: { script: () => ({ text: 'abcdeX', accepts: [1] }) } });
    const body = { prompt: 'x', temperature: 0, stream: true, stop: 'abcdf', return_token_ids: true };
    const chunks = ssePayloads(await (await post(app, '/v1/completions', body)).text());
    const choices = chunks.flatMap((chunk) => chunk['choices'] as { text: string; token_ids: number[] }[]);
    expect(choices.map(({ text, token_ids: ids }) => [text, ids])).toEqual([
      ['', [97]],
      ['', [98, 99]],
      ['abcde', [100, 101]],
      ['X', [88, 256]],
      ['', []],
    ]);
    expect(choices.map((choice) => 'prompt_token_ids' in choice)).toEqual([true, false, false, false, false]);
  });
});

describe('a prompt that is too long', () => {
  test.each([
    [{ truncate_prompt_tokens: 3 }, [4, 5, 6]],
    [{ truncate_prompt_tokens: 6 }, [1, 2, 3, 4, 5, 6]],
    [{ truncate_prompt_tokens: -1, max_tokens: 4 }, [3, 4, 5, 6]],
    [{ truncate_prompt_tokens: -1, max_tokens: 100 }, [6]],
  ])('keeps its end on request: %j', async (fields, tokens) => {
    const { complete, engine } = setUp({ engine: { info: { maxContext: 8 } } });
    await complete({ prompt: [1, 2, 3, 4, 5, 6], max_tokens: 1, ...fields });
    expect(engine.requests[0]!.promptTokens).toEqual(tokens);
  });

  test('is echoed as it was kept', async () => {
    const { complete } = setUp({ engine: script('d') });
    expect((await complete({ prompt: 'abc', truncate_prompt_tokens: 1, echo: true })).choices[0]!['text']).toBe('cd');
  });

  test('may not be cut to more than a context', async () => {
    const response = await post(setUp().app, '/v1/completions', { prompt: 'x', truncate_prompt_tokens: 513 });
    expect(await errorOf(response)).toMatchObject({ param: 'truncate_prompt_tokens', code: 'invalid_value' });
  });
});

describe('special tokens around a prompt', () => {
  test.each([
    [{}, true],
    [{ add_special_tokens: false }, false],
  ] as const)('%j', async (fields, expected) => {
    const { complete, engine } = setUp();
    await complete(fields);
    expect(engine.encoded).toEqual([{ text: 'x', addSpecialTokens: expected }]);
  });
});

describe('rules', () => {
  test('reach the engine in its tokens', async () => {
    const { complete, engine } = setUp();
    await complete({
      presence_penalty: 0.5,
      frequency_penalty: -0.5,
      repetition_penalty: 1.1,
      logit_bias: { 97: 3 },
      min_tokens: 2,
      bad_words: ['no'],
      allowed_token_ids: [97, 98],
      structured_outputs: { choice: ['a', 'b'] },
    });
    expect(engine.requests[0]!.rules).toEqual({
      structure: { kind: 'choice', choices: ['a', 'b'] },
      structureAfter: null,
      allowedTokenIds: [97, 98],
      badWords: [
        [110, 111],
        [32, 110, 111],
      ],
      minTokens: 2,
      logitBias: new Map([[97, 3]]),
      repetitionPenalty: 1.1,
      frequencyPenalty: -0.5,
      presencePenalty: 0.5,
    });
  });

  test.each([
    ['logit_bias', { [VOCAB_SIZE]: 1 }],
    ['allowed_token_ids', [1, VOCAB_SIZE]],
  ])('refuse ids outside the vocabulary: %s', async (param, value) => {
    const response = await post(setUp().app, '/v1/completions', { prompt: 'x', [param]: value });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param, code: 'invalid_value' });
  });

  test.each([
    [{ structured_outputs: { regex: '(' } }, 'structured_outputs.regex'],
    [{ response_format: { type: 'json_object' } }, 'response_format'],
  ])('that an engine refuses are named as they were sent: %j', async (fields, param) => {
    const refuse = () => {
      throw new AppError('invalid_request', 'Expected a structure, got none.', { details: { param: 'structure' } });
    };
    const { app, engine } = setUp({ engine: { checkRules: refuse } });
    const response = await post(app, '/v1/completions', { prompt: 'x', stream: true, ...fields });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param, code: 'invalid_value', type: 'invalid_request_error' });
    expect(engine.requests).toEqual([]);
  });

  test('are no longer waited for when the caller has gone', async () => {
    const asked = new Gate();
    const checkRules = (_: unknown, signal?: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new AbortedError('Compiling', signal.reason)));
        asked.open();
      });
    const { app, engine } = setUp({ engine: { checkRules } });
    const gone = new AbortController();
    const body = JSON.stringify({ prompt: 'x', structured_outputs: { regex: 'a' } });
    const headers = { 'content-type': 'application/json' };
    const response = app.request('/v1/completions', { method: 'POST', headers, body, signal: gone.signal });
    await asked.opened;
    gone.abort();
    expect((await response).status).toBe(499);
    expect(engine.requests).toEqual([]);
  });

  test('that turn out bad during an answer are the caller’s error', async () => {
    const error = new AppError('invalid_request', 'Expected a token, got none.', { details: { param: 'structure' } });
    const { app } = setUp({ engine: { script: () => ({ text: 'x', failsAt: { step: 1, error } }) } });
    const response = await post(app, '/v1/completions', { prompt: 'x', structured_outputs: { regex: 'a' } });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ param: 'structured_outputs.regex' });
  });
});
