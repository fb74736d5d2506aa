import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateObject, generateText, stepCountIs, streamObject, streamText, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { useServers } from '../support/running-server.ts';
import type { ServerFixtureOptions } from '../support/server-fixture.ts';

const start = useServers();
const prompt = 'What is the weather?';
const call = (place: string) => `<tool_call>\n{"name": "weather", "arguments": {"place": "${place}"}}\n</tool_call>`;

async function setUp(text: string | ((turn: number) => string), options: ServerFixtureOptions = {}) {
  let turn = 0;
  const script = () => {
    turn += 1;
    return { text: typeof text === 'string' ? text : text(turn), accepts: [2, 0, 4] };
  };
  const server = await start({ ...options, engine: { info: { maxContext: 4096 }, ...options.engine, script } });
  const provider = createOpenAICompatible({
    name: 'blockdraft',
    baseURL: `${server.url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return { ...server, model: provider('fake-model'), completion: provider.completionModel('fake-model') };
}

/** Tells which places were asked for. */
function weatherTool() {
  const asked: string[] = [];
  const weather = tool({
    description: 'The weather of a place.',
    inputSchema: z.object({ place: z.string() }),
    execute: ({ place }) => {
      asked.push(place);
      return `sun in ${place}`;
    },
  });
  return { asked, tools: { weather } };
}

const settings = { temperature: 0, maxRetries: 0 } as const;

describe('the AI SDK', () => {
  test('generates text, reasoning apart', async () => {
    const { model } = await setUp('<think>hm</think>Sunny.');
    const result = await generateText({ ...settings, model, prompt, system: 'Be brief.' });
    expect(result).toMatchObject({ text: 'Sunny.', reasoningText: 'hm', finishReason: 'stop' });
    expect(result.usage).toMatchObject({ outputTokens: 11, outputTokenDetails: { reasoningTokens: 2 } });
  });

  test('streams text, reasoning apart', async () => {
    const { model } = await setUp('<think>hm</think>Sunny.');
    const result = streamText({ ...settings, model, prompt });
    let text = '';
    for await (const piece of result.textStream) text += piece;
    expect(text).toBe('Sunny.');
    expect(await result.reasoningText).toBe('hm');
    expect((await result.usage).outputTokens).toBe(11);
  });

  test('completes a prompt', async () => {
    const { completion } = await setUp('Sunny.');
    expect((await generateText({ ...settings, model: completion, prompt })).text).toBe('Sunny.');
  });

  test('generates an object by its schema', async () => {
    const { model, engine } = await setUp('{"place": "Rome"}');
    const { object } = await generateObject({ ...settings, model, prompt, schema: z.object({ place: z.string() }) });
    expect(object).toEqual({ place: 'Rome' });
    expect(engine.requests[0]!.rules!.structure).toMatchObject({ kind: 'json-schema' });
  });

  test('streams an object by its schema', async () => {
    const { model } = await setUp('{"place": "Rome"}');
    const result = streamObject({ ...settings, model, prompt, schema: z.object({ place: z.string() }) });
    const partial: unknown[] = [];
    for await (const object of result.partialObjectStream) partial.push(object);
    expect(partial.length).toBeGreaterThan(1);
    expect(await result.object).toEqual({ place: 'Rome' });
  });

  test('runs tools until the model answers', async () => {
    const { model, engine } = await setUp((turn) => (turn === 1 ? `${call('Rome')}\n${call('Oslo')}` : 'Sunny.'));
    const { asked, tools } = weatherTool();
    const result = await generateText({ ...settings, model, prompt, tools, stopWhen: stepCountIs(3) });
    expect(result.text).toBe('Sunny.');
    expect(asked).toEqual(['Rome', 'Oslo']);
    expect(result.steps[0]).toMatchObject({ finishReason: 'tool-calls', toolCalls: [{ toolName: 'weather' }, {}] });
    expect(engine.chats[1]!.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', prompt],
      ['assistant', ''],
      ['tool', 'sun in Rome'],
      ['tool', 'sun in Oslo'],
    ]);
  });

  test('runs tools of a stream, and gives their reasoning back', async () => {
    const { model, engine } = await setUp((turn) => (turn === 1 ? `<think>hm</think>${call('Rome')}` : 'Sunny.'));
    const { asked, tools } = weatherTool();
    const result = streamText({ ...settings, model, prompt, tools, stopWhen: stepCountIs(3) });
    let text = '';
    for await (const piece of result.textStream) text += piece;
    expect(text).toBe('Sunny.');
    expect(asked).toEqual(['Rome']);
    expect(engine.chats[1]!.messages[1]).toMatchObject({
      role: 'assistant',
      reasoning_content: 'hm',
      tool_calls: [{ function: { name: 'weather', arguments: { place: 'Rome' } } }],
    });
  });

  test.each(['required', { type: 'tool', toolName: 'weather' }] as const)('asks for a call with %j', async (toolChoice) => {
    const { model, engine } = await setUp(call('Rome'));
    const { tools } = weatherTool();
    const result = await generateText({ ...settings, model, prompt, tools, toolChoice });
    expect(result.toolCalls).toMatchObject([{ toolName: 'weather', input: { place: 'Rome' } }]);
    expect(engine.requests[0]!.rules!.structure).toMatchObject({ kind: 'structural-tag' });
  });

  test('sees why a request is refused', async () => {
    const { model } = await setUp('');
    const tools = { 'no such name': weatherTool().tools.weather };
    const error = await generateText({ ...settings, model, prompt, tools }).catch((thrown: unknown) => thrown);
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 400, message: expect.stringContaining('Expected tools[0].function.name') });
  });

  test('throws in the middle of a stream that fails', async () => {
    const script = () => ({ text: 'Hello there', accepts: [0], failsAt: { step: 3, error: new Error('scripted') } });
    const server = await start({ engine: { script } });
    const provider = createOpenAICompatible({ name: 'blockdraft', baseURL: `${server.url}/v1` });
    const errors: unknown[] = [];
    const result = streamText({
      ...settings,
      model: provider('fake-model'),
      prompt,
      onError: ({ error }) => void errors.push(error),
    });
    let text = '';
    for await (const piece of result.textStream) text += piece;
    expect(text).toBe('Hel');
    expect(errors).toHaveLength(1);
  });
});
