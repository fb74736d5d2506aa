import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from 'openai';
import { describe, expect, test } from 'vitest';
import { Gate } from '../support/gate.ts';
import { until } from '../support/labelled-timeout.ts';
import { useServers } from '../support/running-server.ts';
import type { ServerFixtureOptions } from '../support/server-fixture.ts';

const start = useServers();
const messages = [{ role: 'user' as const, content: 'hi' }];

async function setUp(options: ServerFixtureOptions = {}, apiKey = 'unused') {
  const server = await start(options);
  return { ...server, client: new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0, timeout: 10_000 }) };
}

describe('the openai client', () => {
  test('gets a chat answer', async () => {
    const { client } = await setUp();
    const answer = await client.chat.completions.create({
      model: 'fake-model',
      messages,
      temperature: 0,
      max_completion_tokens: 9,
    });
    expect(answer.choices[0]).toMatchObject({ message: { role: 'assistant', content: 'An answer' }, finish_reason: 'length' });
    expect(answer.usage).toMatchObject({
      prompt_tokens: 21,
      completion_tokens: 9,
      prompt_tokens_details: { cached_tokens: 0 },
    });
  });

  test('gets a completion', async () => {
    const { client } = await setUp();
    const answer = await client.completions.create({
      model: 'fake-model',
      prompt: ['x', 'y'],
      max_tokens: 2,
      temperature: 0,
      n: 2,
    });
    expect(answer.choices.map(({ text, index }) => [text, index])).toEqual([
      ['An', 0],
      ['An', 1],
      ['An', 2],
      ['An', 3],
    ]);
  });

  test('gets logprobs of a completion and of a chat, whole and streamed', async () => {
    const { client } = await setUp({ engine: { script: () => ({ text: 'aé', accepts: [1] }) } });
    const asked = { model: 'fake-model', temperature: 0 } as const;
    const completion = await client.completions.create({ ...asked, prompt: 'hi', logprobs: 1, echo: true });
    expect(completion.choices[0]).toMatchObject({
      text: 'hiaé',
      logprobs: {
        tokens: ['<104>', '<105>', '<97>', '<195>', '<169>', '<256>'],
        token_logprobs: [null, -1.5, -0.5, -1.5, -0.5, -1.5],
        text_offset: [0, 1, 2, 3, 3, 4],
      },
    });
    const chat = await client.chat.completions.create({ ...asked, messages, logprobs: true, top_logprobs: 1 });
    const told = chat.choices[0]?.logprobs?.content;
    expect(told?.[1]).toEqual({
      token: '<195>',
      logprob: -1.5,
      bytes: [195],
      top_logprobs: [{ token: '<196>', logprob: -0.5, bytes: [196] }],
    });
    const streamed: unknown[] = [];
    for await (const chunk of await client.chat.completions.create({
      ...asked,
      messages,
      logprobs: true,
      top_logprobs: 1,
      stream: true,
    })) {
      streamed.push(...(chunk.choices[0]?.logprobs?.content ?? []));
    }
    expect(streamed).toEqual(told);
  });

  test('streams a chat, with usage', async () => {
    const { client } = await setUp();
    const stream = await client.chat.completions.create({
      model: 'fake-model',
      messages,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let tokens: number | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      tokens = chunk.usage?.completion_tokens;
    }
    expect(text).toBe('An answer to 21 tokens.');
    expect(tokens).toBe(24);
  });

  test('streams a completion', async () => {
    const { client } = await setUp();
    const stream = await client.completions.create({ model: 'fake-model', prompt: 'x', temperature: 0, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? '';
    expect(text).toBe('An answer to 1 t');
  });

  test('assembles a chat with its own stream helper', async () => {
    const { client } = await setUp();
    const answer = await client.chat.completions
      .stream({ model: 'fake-model', messages, temperature: 0 })
      .finalChatCompletion();
    expect(answer.choices[0]?.message.content).toBe('An answer to 21 tokens.');
  });

  test('lists and finds the model', async () => {
    const { client } = await setUp();
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['fake-model']);
    expect(await client.models.retrieve('fake-model')).toMatchObject({ id: 'fake-model', object: 'model' });
  });

  test('can leave a stream, which frees the sequence', async () => {
    const { client, engine } = await setUp({ engine: { script: () => ({ text: 'x'.repeat(400), accepts: [0] }) } });
    const stream = await client.completions.create({ model: 'fake-model', prompt: 'x', max_tokens: 400, stream: true });
    for await (const _ of stream) break;
    await until('the sequence is free', () => engine.load().running === 0);
  });

  test('throws in the middle of a stream that fails', async () => {
    const script = () => ({ text: 'Hello there', accepts: [0], failsAt: { step: 3, error: new Error('scripted') } });
    const { client } = await setUp({ engine: { script } });
    const stream = await client.chat.completions.create({ model: 'fake-model', messages, stream: true });
    let text = '';
    const reading = (async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    })();
    await expect(reading).rejects.toThrow(APIError);
    expect(text).toBe('Hel');
  });
});

describe('the openai client sees its own kind of error for', () => {
  const ask = (client: OpenAI, fields: object = {}) =>
    client.chat.completions.create({ model: 'fake-model', messages, ...fields });

  test('a field that is not supported', async () => {
    const { client } = await setUp();
    const error = await ask(client, { store: true }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({
      status: 400,
      param: 'store',
      code: 'unsupported_parameter',
      type: 'invalid_request_error',
    });
  });

  test('another model', async () => {
    const { client } = await setUp();
    const error = await ask(client, { model: 'gpt-4' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ param: 'model', code: 'model_not_found' });
  });

  test('a wrong key', async () => {
    const { client } = await setUp({ config: { apiKeys: ['right'] } }, 'wrong');
    await expect(ask(client)).rejects.toThrow(AuthenticationError);
  });

  test('a right key: none', async () => {
    const { client } = await setUp({ config: { apiKeys: ['right'] } }, 'right');
    expect((await ask(client)).choices).toHaveLength(1);
  });

  test('a full queue', async () => {
    const gate = new Gate();
    const { client, engine } = await setUp({
      engine: { info: { maxSequences: 1 }, maxWaiting: 0, beforeStep: () => gate.opened },
    });
    const first = ask(client);
    await until('the first request runs', () => engine.load().running === 1);
    const error = await ask(client).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 503, code: 'overloaded' });
    await expect(ask(client, { stream: true })).rejects.toThrow(InternalServerError);
    gate.open();
    await first;
  });

  test('too many requests of one key', async () => {
    const gate = new Gate();
    const { client, engine } = await setUp({ engine: { beforeStep: () => gate.opened }, config: { maxRequestsPerKey: 1 } });
    const first = ask(client);
    await until('the first request runs', () => engine.load().running === 1);
    await expect(ask(client)).rejects.toThrow(RateLimitError);
    gate.open();
    await first;
  });

  test('a model that is still loading', async () => {
    const { client } = await setUp({ status: () => ({ state: 'loading' }) });
    const error = await ask(client).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 503, type: 'unavailable_error' });
  });
});
