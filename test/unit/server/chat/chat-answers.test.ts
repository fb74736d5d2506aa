import { describe, expect, test } from 'vitest';
import { AppError } from '../../../../src/core/app-error.ts';
import { createApp } from '../../../../src/server/app.ts';
import { ssePayloads } from '../../../support/read-sse.ts';
import { createServerFixture, type ServerFixtureOptions } from '../../../support/server-fixture.ts';
import { errorOf, post } from '../../../support/server-requests.ts';

interface ChatAnswer {
  readonly choices: readonly {
    readonly message: Readonly<Record<string, unknown>>;
    readonly finish_reason: string;
    readonly logprobs: { readonly content: readonly { readonly token: string }[] } | null;
  }[];
  readonly usage: Readonly<Record<string, unknown>>;
}

const PATH = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'hi' }];
const parameters = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
const tool = (name: string, described: object = { parameters }) => ({ type: 'function', function: { name, ...described } });
const call = (name: string, args = '{"a": 1}') => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const THINK = 259;
const END_THINK = 260;

function setUp(text: string, options: ServerFixtureOptions = {}) {
  const fixture = createServerFixture({ ...options, engine: { script: () => ({ text, accepts: [4] }), ...options.engine } });
  const app = createApp(fixture.options);
  const ask = (fields: object) => post(app, PATH, { messages, temperature: 0, ...fields });
  const answer = async (fields: object = {}): Promise<ChatAnswer> => {
    const response = await ask(fields);
    expect(response.status).toBe(200);
    return (await response.json()) as ChatAnswer;
  };
  const refused = async (fields: object) => {
    const response = await ask(fields);
    expect(response.status).toBe(400);
    return errorOf(response);
  };
  return { ...fixture, answer, refused };
}

describe('reasoning', () => {
  const text = '<think>\nhm\n</think>\n\nYes';

  test('is told apart, under both names, and counted', async () => {
    const { answer } = setUp(text);
    const { choices, usage } = await answer();
    expect(choices[0]!.message).toEqual({
      role: 'assistant',
      content: '\n\nYes',
      refusal: null,
      reasoning: '\nhm\n',
      reasoning_content: '\nhm\n',
    });
    expect(usage).toMatchObject({ completion_tokens: 12, completion_tokens_details: { reasoning_tokens: 4 } });
  });

  test('of all choices is counted', async () => {
    const { usage } = await setUp(text).answer({ n: 3 });
    expect(usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 12 } });
  });

  test('can be left out, and is counted all the same', async () => {
    const { choices, usage } = await setUp(text).answer({ include_reasoning: false });
    expect(choices[0]!.message).toEqual({ role: 'assistant', content: '\n\nYes', refusal: null });
    expect(usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 4 } });
  });

  test('that the prompt opens begins with the answer', async () => {
    const { answer } = setUp('hm</think>Yes', { engine: { generationPrompt: '<|im_start|>assistant\n<think>\n' } });
    expect((await answer()).choices[0]!.message).toMatchObject({ content: 'Yes', reasoning: 'hm' });
  });

  test('that the prompt closes is none', async () => {
    const { answer, engine } = setUp('<think>Yes');
    const { choices, usage } = await answer({ chat_template_kwargs: { enable_thinking: false } });
    expect(choices[0]!.message).toEqual({ role: 'assistant', content: '<think>Yes', refusal: null });
    expect(usage).toMatchObject({ completion_tokens_details: { reasoning_tokens: 0 } });
    expect(engine.chats[0]!.options!.variables).toEqual({ enable_thinking: false });
  });

  test.each([
    ['Well, ', 'closed'],
    ['<think>hm', 'open'],
    ['<think>hm</think>Well, ', 'closed'],
  ])('of a message %j that is continued: %s', async (content, start) => {
    const { answer } = setUp('so</think>Yes');
    const begun = [...messages, { role: 'assistant', content }];
    const { choices } = await answer({ messages: begun, continue_final_message: true });
    expect(choices[0]!.message).toMatchObject(
      start === 'open' ? { content: 'Yes', reasoning: 'so' } : { content: 'so</think>Yes' },
    );
  });

  test('stays in the text where the model has no tokens for it, unless it is asked for', async () => {
    const engine = { addedTokens: false };
    const { choices, usage } = await setUp(text, { engine }).answer();
    expect(choices[0]!.message).toEqual({ role: 'assistant', content: text, refusal: null });
    expect(usage).not.toHaveProperty('completion_tokens_details');
    const asked = await setUp(text, { engine, config: { reasoningParser: 'qwen3' } }).answer();
    expect(asked.choices[0]!.message).toMatchObject({ content: '\n\nYes', reasoning: '\nhm\n' });
  });

  test('stays in the text where the server is told so', async () => {
    const { choices } = await setUp(text, { config: { reasoningParser: 'none' } }).answer();
    expect(choices[0]!.message).toMatchObject({ content: text });
  });

  test.each<readonly [string, string | undefined, object, unknown]>([
    ['opened by the answer', undefined, {}, { begin: THINK, end: END_THINK }],
    ['opened by the prompt', '<|im_start|>assistant\n<think>\n', {}, { begin: null, end: END_THINK }],
    ['closed by the prompt', undefined, { chat_template_kwargs: { enable_thinking: false } }, null],
  ])('comes before a structure: %s', async (_, generationPrompt, fields, expected) => {
    const { answer, engine } = setUp('{}', { engine: generationPrompt === undefined ? {} : { generationPrompt } });
    await answer({ ...fields, response_format: { type: 'json_object' } });
    expect(engine.requests[0]!.rules).toMatchObject({ structure: { kind: 'json-object' }, structureAfter: expected });
  });

  test('whose end is no token cannot come before a structure', async () => {
    const engine = { addedTokens: false, generationPrompt: '<think>' };
    const { refused } = setUp('{}', { engine, config: { reasoningParser: 'qwen3' } });
    expect(await refused({ response_format: { type: 'json_object' } })).toMatchObject({ param: 'response_format' });
  });
});

describe('tool calls', () => {
  test('are told apart from the text', async () => {
    const { answer, engine } = setUp(`Let me see.\n${call('f')}\n${call('g', '{}')}`);
    const { choices } = await answer({ tools: [tool('f'), tool('g')] });
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', stop_reason: null });
    expect(choices[0]!.message).toEqual({
      role: 'assistant',
      content: 'Let me see.\n',
      refusal: null,
      tool_calls: [
        { id: expect.stringMatching(/^call_[0-9a-f]{32}$/), type: 'function', function: { name: 'f', arguments: '{"a": 1}' } },
        { id: expect.stringMatching(/^call_[0-9a-f]{32}$/), type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
    });
    expect(engine.chats[0]!.options!.tools).toEqual([tool('f'), tool('g')]);
    expect(engine.requests[0]!.rules!.structure).toBeNull();
  });

  test('without text have no content', async () => {
    const { choices } = await setUp(call('f')).answer({ tools: [tool('f')] });
    expect(choices[0]!.message).toMatchObject({ content: null, tool_calls: [{}] });
  });

  test('behind reasoning, and none inside of it', async () => {
    const { choices } = await setUp(`<think>${call('f')}</think>\n\n${call('g')}`).answer({ tools: [tool('f'), tool('g')] });
    expect(choices[0]!.message).toMatchObject({
      content: null,
      reasoning: call('f'),
      tool_calls: [{ function: { name: 'g' } }],
    });
    expect(choices[0]!.message['tool_calls']).toHaveLength(1);
  });

  test('and reasoning are found where their tags are special tokens, as the others are left out', async () => {
    const { answer } = setUp(`<think>hm</think>a<|im_end|>${call('f')}`, { engine: { specialTags: true } });
    const { choices } = await answer({ tools: [tool('f')] });
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'a', reasoning: 'hm', tool_calls: [{ function: { name: 'f', arguments: '{"a": 1}' } }] },
    });
  });

  test('that max_tokens cuts off end with length', async () => {
    const { choices } = await setUp(call('f')).answer({ tools: [tool('f')], max_tokens: 34 });
    expect(choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { tool_calls: [{ function: { arguments: '{"a":' } }] },
    });
  });

  test('that a stop string cuts off are no complete calls, and end with stop', async () => {
    const { choices } = await setUp(`${call('f')}${call('g')}`).answer({ tools: [tool('f'), tool('g')], stop: ' 1' });
    expect(choices[0]).toMatchObject({
      finish_reason: 'stop',
      stop_reason: ' 1',
      message: { tool_calls: [{ function: { arguments: '{"a":' } }] },
    });
    const whole = await setUp(`${call('f')}END`).answer({ tools: [tool('f')], stop: 'END' });
    expect(whole.choices[0]).toMatchObject({ finish_reason: 'tool_calls', stop_reason: 'END' });
  });

  test('beyond the first are content where only one is wanted', async () => {
    const { choices } = await setUp(`${call('f')}\n${call('g')}`).answer({
      tools: [tool('f'), tool('g')],
      parallel_tool_calls: false,
    });
    expect(choices[0]!.message).toMatchObject({ content: `\n${call('g')}`, tool_calls: [{ function: { name: 'f' } }] });
  });

  test('are text like any other, and tools unknown to the model, with tool_choice none', async () => {
    const { answer, engine } = setUp(call('f'));
    const { choices } = await answer({ tools: [tool('f')], tool_choice: 'none' });
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: call('f') } });
    expect(engine.chats[0]!.options!.tools).toBeNull();
  });

  const tags = (...names: string[]) =>
    names.map((name) => ({
      type: 'tag',
      begin: `<tool_call>\n{"name": "${name}", "arguments": `,
      content: { type: 'json_schema', json_schema: parameters },
      end: '}\n</tool_call>',
    }));
  const calls = (stop_after_first: boolean, ...names: string[]) => ({
    type: 'tags_with_separator',
    tags: tags(...names),
    separator: '\n',
    at_least_one: true,
    stop_after_first,
  });

  test.each<readonly [string, object, unknown]>([
    ['required', { tool_choice: 'required' }, calls(false, 'f', 'g')],
    ['required, one at a time', { tool_choice: 'required', parallel_tool_calls: false }, calls(true, 'f', 'g')],
    ['named', { tool_choice: { type: 'function', function: { name: 'g' } } }, calls(true, 'g')],
    [
      'required, whatever an answer without a call would have to be',
      { tool_choice: 'required', response_format: { type: 'json_object' } },
      calls(false, 'f', 'g'),
    ],
    [
      'or JSON',
      { response_format: { type: 'json_object' } },
      { type: 'or', elements: [{ type: 'json_schema', json_schema: { type: 'object' } }, ...tags('f', 'g')] },
    ],
    [
      'or one of some texts',
      { structured_outputs: { choice: ['a', 'b'] } },
      {
        type: 'or',
        elements: [
          {
            type: 'or',
            elements: [
              { type: 'const_string', value: 'a' },
              { type: 'const_string', value: 'b' },
            ],
          },
          ...tags('f', 'g'),
        ],
      },
    ],
    [
      'strict',
      { tools: [tool('f', { parameters, strict: true })] },
      { type: 'triggered_tags', triggers: ['<tool_call>'], tags: tags('f') },
    ],
  ])('are enforced where they are %s', async (_, fields, format) => {
    const { answer, engine } = setUp(call('f'));
    await answer({ tools: [tool('f'), tool('g')], ...fields });
    const { structure, structureAfter } = engine.requests[0]!.rules!;
    expect(structure).toEqual({ kind: 'structural-tag', tag: expect.any(String) });
    expect(JSON.parse((structure as { tag: string }).tag)).toEqual({ type: 'structural_tag', format });
    expect(structureAfter).toEqual({ begin: THINK, end: END_THINK });
  });

  test('of a function without parameters have none', async () => {
    const { answer, engine } = setUp(call('f'));
    await answer({ tools: [tool('f', {})], tool_choice: 'required' });
    expect((engine.requests[0]!.rules!.structure as { tag: string }).tag).toContain(
      '{"type":"object","properties":{},"additionalProperties":false}',
    );
  });

  test('that the engine cannot enforce are refused by the name of the tools', async () => {
    const { refused, engine } = setUp('');
    engine.checkRules = async () => {
      throw new AppError('invalid_request', 'Expected a schema, got another one. Change it.', {
        details: { param: 'structure' },
      });
    };
    expect(await refused({ tools: [tool('f')], tool_choice: 'required' })).toMatchObject({ param: 'tools' });
  });

  test.each<readonly [string, object, ServerFixtureOptions, string, string]>([
    [
      'more characters than the context holds',
      { tools: [tool('f', { description: 'x'.repeat(9000) })] },
      {},
      'tools',
      'context_length_exceeded',
    ],
    [
      'a structure beyond the limit',
      {
        tools: [tool('f', { parameters: { type: 'object', description: 'x'.repeat(70_000) } })],
        tool_choice: 'required',
      },
      { engine: { info: { maxContext: 100_000 } } },
      'tools',
      'invalid_value',
    ],
  ])('are refused for %s', async (_, fields, options, param, code) => {
    expect(await setUp('', options).refused(fields)).toMatchObject({ param, code });
  });
});

test('tools are told in a message where the template shows none, and calls are found alike', async () => {
  const { answer, engine } = setUp(call('f'), { engine: { info: { chatVariables: ['messages'] } } });
  const { choices } = await answer({ tools: [tool('f')] });
  expect(choices[0]!.message['tool_calls']).toMatchObject([{ function: { name: 'f', arguments: '{"a": 1}' } }]);
  const { messages: told, options: rendered } = engine.chats[0]!;
  expect(told[0]).toMatchObject({ role: 'system', content: expect.stringContaining('"name":"f"') });
  expect(rendered?.tools).toBeNull();
});

describe('variables of the chat template', () => {
  const knowing = (...names: string[]) => ({ engine: { info: { chatVariables: ['messages', ...names] } } });

  test.each<readonly [string, object, string[], object]>([
    ['that it reads', { chat_template_kwargs: { date: 'today' } }, ['date'], { date: 'today' }],
    ['enable_thinking, always', { chat_template_kwargs: { enable_thinking: true } }, [], { enable_thinking: true }],
    ['the effort where it reads it', { reasoning_effort: 'low' }, ['reasoning_effort'], { reasoning_effort: 'low' }],
    [
      'no effort where it can switch thinking off',
      { reasoning_effort: 'none' },
      ['enable_thinking'],
      { enable_thinking: false },
    ],
    ['no effort where there is no thinking', { reasoning_effort: 'none' }, [], {}],
  ])('are handed on: %s', async (_, fields, names, expected) => {
    const { answer, engine } = setUp('Yes', knowing(...names));
    await answer(fields);
    expect(engine.chats[0]!.options).toEqual({
      addGenerationPrompt: true,
      continueFinalMessage: false,
      tools: null,
      variables: expected,
    });
  });

  test.each<readonly [object, string, string]>([
    [{ chat_template_kwargs: { dote: 'x' } }, 'chat_template_kwargs.dote', 'invalid_value'],
    [{ reasoning_effort: 'high' }, 'reasoning_effort', 'unsupported_parameter'],
  ])('are refused: %j', async (fields, param, code) => {
    expect(await setUp('', knowing('date', 'enable_thinking')).refused(fields)).toMatchObject({ param, code });
  });
});

describe('messages', () => {
  test('are continued where they end', async () => {
    const { answer, engine } = setUp('Yes');
    await answer({ messages: [...messages, { role: 'assistant', content: 'Well, ' }], continue_final_message: true });
    expect(engine.encoded.at(-1)!.text).toMatch(/<\|im_start\|>assistant\nWell, $/);
  });

  test('may end without a generation prompt', async () => {
    const { answer, engine } = setUp('Yes');
    await answer({ add_generation_prompt: false });
    expect(engine.encoded.at(-1)!.text).toBe('<|im_start|>user\nhi<|im_end|>\n');
  });

  test('take special tokens around them on request', async () => {
    const { answer, engine } = setUp('Yes');
    await answer({ add_special_tokens: true });
    expect(engine.encoded.at(-1)!.addSpecialTokens).toBe(true);
  });

  test('that a template makes too long are refused before they are encoded', async () => {
    const { refused, engine } = setUp('', { engine: { generationPrompt: 'x'.repeat(9000) } });
    expect(await refused({})).toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
    // Counting their tokens would keep everybody waiting.
    expect(engine.encoded).toEqual([]);
  });
});

describe('what is told of tokens', () => {
  const text = `<think>a</think>${call('f')}`;
  const fields = { tools: [tool('f')], logprobs: true, top_logprobs: 1, return_token_ids: true };

  test('is told of each one, whatever it became', async () => {
    const { answer, engine } = setUp(text);
    const { choices, ...rest } = await answer(fields);
    const tokens = [...engine.text.encode(text, { addSpecialTokens: false }), 256];
    expect(choices[0]!.logprobs!.content.map(({ token }) => token)).toEqual(
      tokens.map((token) => engine.text.tokenText(token)),
    );
    expect(choices[0]).toMatchObject({ token_ids: tokens });
    expect(rest).toMatchObject({ prompt_token_ids: engine.requests[0]!.promptTokens });
  });

  test('joins to the same in a stream', async () => {
    const whole = await setUp(text).answer(fields);
    const fixture = createServerFixture({ engine: { script: () => ({ text, accepts: [1] }) } });
    const response = await post(createApp(fixture.options), PATH, { messages, temperature: 0, ...fields, stream: true });
    const chunks = ssePayloads(await response.text()) as unknown as ChatAnswer[];
    const told = chunks.flatMap(({ choices }) => choices);
    expect(told.flatMap(({ logprobs }) => logprobs?.content ?? [])).toEqual(whole.choices[0]!.logprobs!.content);
    expect(told.flatMap((choice) => (choice as { token_ids?: number[] }).token_ids ?? [])).toEqual(
      (whole.choices[0] as { token_ids?: number[] }).token_ids,
    );
  });

  test('of the prompt is part of the answer', async () => {
    const answer = await setUp('Yes').answer({ prompt_logprobs: 1 });
    expect(answer).toMatchObject({ prompt_logprobs: expect.arrayContaining([null]) });
  });
});
