import OpenAI, { BadRequestError } from 'openai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { useServers } from '../support/running-server.ts';
import type { ServerFixtureOptions } from '../support/server-fixture.ts';

const start = useServers();
const model = 'fake-model';
const messages = [{ role: 'user' as const, content: 'What is the weather?' }];
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'weather',
      description: 'The weather of a place.',
      parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    },
  },
];
const call = (place: string) => `<tool_call>\n{"name": "weather", "arguments": {"place": "${place}"}}\n</tool_call>`;

async function setUp(text: string | ((turn: number) => string), options: ServerFixtureOptions = {}) {
  let turn = 0;
  const script = () => {
    turn += 1;
    return { text: typeof text === 'string' ? text : text(turn), accepts: [2, 0, 4] };
  };
  const server = await start({ ...options, engine: { info: { maxContext: 4096 }, ...options.engine, script } });
  return { ...server, client: new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'unused', maxRetries: 0, timeout: 10_000 }) };
}

describe('the openai client', () => {
  test('gets the calls of an answer', async () => {
    const { client } = await setUp(`Let me see.\n${call('Rome')}\n${call('Oslo')}`);
    const { choices } = await client.chat.completions.create({ model, messages, tools, temperature: 0 });
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: 'Let me see.\n' } });
    const places = choices[0]!.message.tool_calls!.map((made) => made.type === 'function' && made.function.arguments);
    expect(places).toEqual(['{"place": "Rome"}', '{"place": "Oslo"}']);
  });

  test('assembles streamed calls with its own helper', async () => {
    const { client } = await setUp(`<think>hm</think>${call('Rome')}\n${call('Oslo')}`);
    const stream = client.chat.completions.stream({ model, messages, tools, temperature: 0 });
    const done: string[] = [];
    stream.on('tool_calls.function.arguments.done', ({ name, arguments: text }) => done.push(`${name} ${text}`));
    const { choices } = await stream.finalChatCompletion();
    expect(done).toEqual(['weather {"place": "Rome"}', 'weather {"place": "Oslo"}']);
    expect(choices[0]!.message.tool_calls).toHaveLength(2);
    expect(choices[0]!.finish_reason).toBe('tool_calls');
  });

  test('runs tools with its own runner, and tells the model what came of them', async () => {
    const { client, engine } = await setUp((turn) => (turn === 1 ? call('Rome') : 'Sunny.'));
    const asked: string[] = [];
    const runner = client.chat.completions.runTools({
      model,
      messages,
      temperature: 0,
      tools: [
        {
          type: 'function',
          function: {
            ...tools[0]!.function,
            parse: (text: string) => z.object({ place: z.string() }).parse(JSON.parse(text)),
            function: ({ place }: { place: string }) => {
              asked.push(place);
              return 'sun';
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('Sunny.');
    expect(asked).toEqual(['Rome']);
    const id = runner.messages.find((message) => message.role === 'tool')!.tool_call_id;
    expect(engine.chats[1]!.messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: { place: 'Rome' } } }],
      },
      { role: 'tool', content: 'sun', tool_call_id: id },
    ]);
  });

  test.each(['required', { type: 'function', function: { name: 'weather' } }] as const)(
    'gets a call that it asks for with tool_choice %j',
    async (choice) => {
      const { client, engine } = await setUp(call('Rome'));
      const { choices } = await client.chat.completions.create({ model, messages, tools, tool_choice: choice });
      expect(choices[0]!.message.tool_calls).toHaveLength(1);
      expect(engine.requests[0]!.rules!.structure).toMatchObject({ kind: 'structural-tag' });
    },
  );

  test('gets reasoning apart from the content, whole and streamed', async () => {
    const { client } = await setUp('<think>\nhm\n</think>\n\nYes');
    const { choices, usage } = await client.chat.completions.create({ model, messages, temperature: 0 });
    expect(choices[0]!.message).toMatchObject({ content: '\n\nYes', reasoning: '\nhm\n' });
    expect(usage!.completion_tokens_details!.reasoning_tokens).toBe(4);
    const stream = await client.chat.completions.create({ model, messages, temperature: 0, stream: true });
    let reasoning = '';
    let content = '';
    for await (const { choices: deltas } of stream) {
      const delta = deltas[0]!.delta as { content?: string; reasoning?: string };
      reasoning += delta.reasoning ?? '';
      content += delta.content ?? '';
    }
    expect([reasoning, content]).toEqual(['\nhm\n', '\n\nYes']);
  });

  test('parses an answer by a schema', async () => {
    const { client, engine } = await setUp('{"place": "Rome"}');
    const { choices } = await client.chat.completions.parse({
      model,
      messages,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'place', strict: true, schema: { type: 'object', properties: { place: { type: 'string' } } } },
      },
    });
    expect(choices[0]!.message.parsed).toEqual({ place: 'Rome' });
    expect(engine.requests[0]!.rules!.structure).toMatchObject({ kind: 'json-schema' });
  });

  test('gets logprobs', async () => {
    const { client } = await setUp('Yes');
    const { choices } = await client.chat.completions.create({
      model,
      messages,
      logprobs: true,
      top_logprobs: 2,
      max_tokens: 3,
    });
    expect(choices[0]!.logprobs!.content).toHaveLength(3);
    expect(choices[0]!.logprobs!.content![0]!.top_logprobs).toHaveLength(2);
  });

  test.each([
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
      'messages[0].content[0].type',
    ],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].tool_call_id'],
  ])('sees which field is wrong: %j', async (fields, param) => {
    const { client } = await setUp('Yes');
    const asked = { model, messages, ...fields } as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const error = await client.chat.completions.create(asked).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ param });
  });
});
