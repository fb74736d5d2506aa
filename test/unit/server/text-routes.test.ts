import { describe, expect, test } from 'vitest';
import { createApp } from '../../../src/server/app.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../support/server-fixture.ts';
import { errorOf, post } from '../../support/server-requests.ts';

function setUp(options: ServerFixtureOptions = {}) {
  const fixture = createServerFixture(options);
  const app = createApp(fixture.options);
  return { ...fixture, app, ask: async (path: string, body: unknown) => (await post(app, path, body)).json() };
}

const messages = [{ role: 'user', content: 'hi' }];
const CHAT = '<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n';

describe('POST /tokenize', () => {
  test('tells the tokens of a text', async () => {
    const { ask, engine } = setUp();
    expect(await ask('/tokenize', { prompt: 'hi', model: 'fake-model' })).toEqual({
      count: 2,
      max_model_len: 512,
      tokens: [104, 105],
      token_strs: null,
    });
    expect(engine.encoded).toEqual([{ text: 'hi', addSpecialTokens: true }]);
    expect(await ask('/tokenize', { prompt: '', add_special_tokens: false, return_token_strs: true })).toMatchObject({
      count: 0,
      tokens: [],
      token_strs: [],
    });
    expect(engine.encoded.at(-1)).toEqual({ text: '', addSpecialTokens: false });
  });

  test('spells them as the vocabulary does', async () => {
    expect(await setUp().ask('/tokenize', { prompt: 'h<|end|>', return_token_strs: true })).toMatchObject({
      tokens: [104, 256],
      token_strs: ['<104>', '<256>'],
    });
  });

  test('renders messages as the chat route does', async () => {
    const { ask, engine, app } = setUp();
    const told = await ask('/tokenize', { messages, return_token_strs: true });
    expect(engine.encoded.at(-1)).toEqual({ text: CHAT, addSpecialTokens: false });
    await post(app, '/v1/chat/completions', { messages });
    expect((told as { tokens: number[] }).tokens).toEqual(engine.requests[0]!.promptTokens);
  });

  test.each([
    [{}, 'prompt'],
    [{ prompt: 5 }, 'prompt'],
    [{ prompt: 'x', foo: 1 }, 'foo'],
    [{ prompt: 'x', model: 'other' }, 'model'],
    [{ prompt: 'x'.repeat(16 * 512 + 1) }, 'prompt'],
    [{ messages: [] }, 'messages'],
    [{ messages, return_token_strs: 1 }, 'return_token_strs'],
    [{ messages, prompt: 'x' }, 'prompt'],
  ])('refuses %j', async (body, param) => {
    expect(await errorOf(await post(setUp().app, '/tokenize', body))).toMatchObject({ param });
  });
});

describe('POST /detokenize', () => {
  test('tells the text of tokens, special ones included', async () => {
    expect(await setUp().ask('/detokenize', { tokens: [104, 256, 105] })).toEqual({ prompt: 'h<|end|>i' });
    expect(await setUp().ask('/detokenize', { tokens: [] })).toEqual({ prompt: '' });
  });

  test.each([
    [{}, 'tokens'],
    [{ tokens: 'x' }, 'tokens'],
    [{ tokens: [1, -1] }, 'tokens[1]'],
    [{ tokens: [100_000] }, 'tokens'],
    [{ tokens: [1], model: 'other' }, 'model'],
  ])('refuses %j', async (body, param) => {
    expect(await errorOf(await post(setUp().app, '/detokenize', body))).toMatchObject({ param });
  });
});

describe('what a request is rendered to', () => {
  test('is what a completion would begin with', async () => {
    const { ask, engine } = setUp();
    const body = { prompt: ['hi', 'abc'], max_tokens: 5, truncate_prompt_tokens: 2 };
    expect(await ask('/v1/completions/render', body)).toEqual({
      object: 'list',
      model: 'fake-model',
      max_model_len: 512,
      data: [
        { object: 'prompt', text: 'hi', token_ids: [104, 105], count: 2 },
        { object: 'prompt', text: null, token_ids: [98, 99], count: 2 },
      ],
    });
    expect(engine.requests).toEqual([]);
  });

  test('is what a chat would begin with', async () => {
    const { ask, app, engine } = setUp();
    const told = (await ask('/v1/chat/completions/render', { messages })) as { data: { text: string; token_ids: number[] }[] };
    await post(app, '/v1/chat/completions', { messages });
    expect(told.data).toEqual([
      {
        object: 'prompt',
        text: CHAT,
        token_ids: engine.requests[0]!.promptTokens,
        count: engine.requests[0]!.promptTokens.length,
      },
    ]);
  });

  test.each([
    ['/v1/completions/render', { prompt: 'x', temperature: 3 }, 'temperature'],
    ['/v1/completions/render', { prompt: 'x', model: 'other' }, 'model'],
    ['/v1/chat/completions/render', { messages: [] }, 'messages'],
  ])('%s refuses %j', async (path, body, param) => {
    expect(await errorOf(await post(setUp().app, path, body))).toMatchObject({ param });
  });
});

test.each(['/tokenize', '/detokenize', '/v1/completions/render'])('%s is unavailable while the model loads', async (path) => {
  const { app } = setUp({ status: () => ({ state: 'loading' }) });
  expect((await post(app, path, { prompt: 'x' })).status).toBe(503);
});
