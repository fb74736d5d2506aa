import { describe, expect, test } from 'vitest';
import { createChatRequestParser } from '../../../../src/server/schemas/chat-request.ts';
import { DEFAULT_SERVER_CONFIG } from '../../../../src/server/server-config.ts';

const parse = createChatRequestParser(DEFAULT_SERVER_CONFIG.limits);
const user = { role: 'user', content: 'x' };
const chat = (fields: object) => parse({ messages: [user], ...fields });
const parseMessages = (...messages: unknown[]) => parse({ messages }).messages;
const refusal = (param: string, code = 'invalid_value') =>
  expect.objectContaining({
    code: 'invalid_request',
    message: expect.stringMatching(/^Expected .+, got .+\. ?\w/s),
    details: expect.objectContaining({ param, code }),
  });

const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a": [1, "x"]}' } };

describe('messages', () => {
  test('hold text or text parts, and a developer speaks as the system', () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ];
    expect(
      parseMessages(
        { role: 'developer', content: 'be brief' },
        { role: 'user', content: parts, name: 'bob' },
        { role: 'assistant', content: 'c', refusal: null, annotations: [], tool_calls: [], tool_call_id: null },
      ),
    ).toEqual([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'a\nb', name: 'bob' },
      { role: 'assistant', content: 'c' },
    ]);
  });

  test('tell of calls and of what came of them', () => {
    expect(
      parseMessages(
        { role: 'assistant', content: null, tool_calls: [call, { ...call, function: { name: 'g', arguments: '' } }] },
        { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '7' }] },
        { role: 'assistant', content: 'It is 7.', reasoning: 'so' },
        { role: 'assistant', tool_calls: [call], reasoning_content: 'hm' },
      ),
    ).toEqual([
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'f', arguments: { a: [1, 'x'] } } },
          { id: 'call_1', type: 'function', function: { name: 'g', arguments: {} } },
        ],
      },
      { role: 'tool', content: '7', tool_call_id: 'call_1' },
      { role: 'assistant', content: 'It is 7.', reasoning_content: 'so' },
      {
        role: 'assistant',
        content: '',
        reasoning_content: 'hm',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: { a: [1, 'x'] } } }],
      },
    ]);
  });

  test.each<readonly [string, unknown, string, string]>([
    ['too many', Array.from({ length: 2049 }, () => user), 'messages', 'invalid_value'],
    ['none', [], 'messages', 'invalid_value'],
    ['of an unknown role', [{ role: 'function', content: 'x' }], 'messages[0].role', 'invalid_value'],
    ['without a role', [{ content: 'x' }], 'messages[0].role', 'missing_parameter'],
    ['without content', [{ role: 'user' }], 'messages[0].content', 'missing_parameter'],
    [
      'of an assistant that neither says nor calls',
      [{ role: 'assistant', content: null }],
      'messages[0].content',
      'missing_parameter',
    ],
    ['of no parts', [{ role: 'user', content: [] }], 'messages[0].content', 'invalid_value'],
    ['of a number', [{ role: 'user', content: 5 }], 'messages[0].content', 'invalid_value'],
    [
      'with an image',
      [
        user,
        {
          role: 'user',
          content: [
            { type: 'text', text: 'x' },
            { type: 'image_url', image_url: { url: 'http://x' } },
          ],
        },
      ],
      'messages[1].content[1].type',
      'unsupported_parameter',
    ],
    [
      'with sound',
      [{ role: 'user', content: [{ type: 'input_audio' }] }],
      'messages[0].content[0].type',
      'unsupported_parameter',
    ],
    ['with a file', [{ role: 'user', content: [{ type: 'file' }] }], 'messages[0].content[0].type', 'unsupported_parameter'],
    ['with a part that is none', [{ role: 'user', content: ['x'] }], 'messages[0].content[0]', 'invalid_value'],
    ['with a part without text', [{ role: 'user', content: [{ type: 'text' }] }], 'messages[0].content[0]', 'invalid_value'],
    ['with a name that is markup', [{ ...user, name: '<|im_end|>' }], 'messages[0].name', 'invalid_value'],
    ['with an unknown field', [{ ...user, foo: 1 }], 'messages[0].foo', 'unknown_parameter'],
    ['with a refusal', [{ role: 'assistant', content: 'x', refusal: 'no' }], 'messages[0].refusal', 'unsupported_parameter'],
    ['of a user who calls', [{ ...user, tool_calls: [call] }], 'messages[0].tool_calls', 'invalid_value'],
    ['of a user who reasons', [{ ...user, reasoning: 'hm' }], 'messages[0].reasoning_content', 'invalid_value'],
    ['of a tool that answers no call', [{ role: 'tool', content: 'x' }], 'messages[0].tool_call_id', 'missing_parameter'],
    ['of a user who answers a call', [{ ...user, tool_call_id: 'c' }], 'messages[0].tool_call_id', 'invalid_value'],
    [
      'with arguments that are no JSON',
      [{ role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: '{' } }] }],
      'messages[0].tool_calls[0].function.arguments',
      'invalid_value',
    ],
    [
      'with arguments that are no object',
      [{ role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: '[1]' } }] }],
      'messages[0].tool_calls[0].function.arguments',
      'invalid_value',
    ],
    [
      'with arguments that are too deep',
      [
        {
          role: 'assistant',
          tool_calls: [{ ...call, function: { name: 'f', arguments: `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}` } }],
        },
      ],
      'messages[0].tool_calls[0].function.arguments',
      'invalid_value',
    ],
    [
      'with a call of a name that is none',
      [{ role: 'assistant', tool_calls: [{ ...call, function: { name: 'f g', arguments: '{}' } }] }],
      'messages[0].tool_calls[0].function.name',
      'invalid_value',
    ],
  ])('may not be %s', (_, messages, param, code) => {
    expect(() => parse({ messages })).toThrow(refusal(param, code));
  });
});

describe('tools', () => {
  const tool = (name: string, described: object = {}) => ({ type: 'function', function: { name, ...described } });
  const deep = (levels: number): object => (levels === 0 ? {} : { items: deep(levels - 1) });

  test('are offered, all of them unless one is named', () => {
    const tools = [tool('f', { description: 'd', parameters: { type: 'object' }, strict: true }), tool('g')];
    expect(chat({ tools }).toolUse).toEqual({ tools, choice: 'auto', parallel: true });
    expect(chat({ tools, tool_choice: 'required', parallel_tool_calls: false }).toolUse).toEqual({
      tools,
      choice: 'required',
      parallel: false,
    });
    const named = { type: 'function', function: { name: 'g' } };
    expect(chat({ tools, tool_choice: named }).toolUse).toEqual({ tools: [tools[1]], choice: 'required', parallel: false });
  });

  test.each([
    {},
    { tools: null },
    { tools: [] },
    { tools: [], tool_choice: 'auto' },
    { tools: [tool('f')], tool_choice: 'none' },
  ])('are not there with %j', (fields) => {
    expect(chat(fields).toolUse).toBeNull();
  });

  test.each<readonly [string, object, string, string]>([
    ['too many', { tools: Array.from({ length: 129 }, (_, i) => tool(`f${i}`)) }, 'tools', 'invalid_value'],
    ['of another type', { tools: [{ type: 'web_search' }] }, 'tools[0].type', 'invalid_value'],
    [
      'of another type, with its fields',
      { tools: [{ type: 'custom', custom: { name: 'f' } }] },
      'tools[0].type',
      'invalid_value',
    ],
    ['without a name', { tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', 'missing_parameter'],
    ['with a name that is none', { tools: [tool('f', {}), tool('a b')] }, 'tools[1].function.name', 'invalid_value'],
    ['with one name twice', { tools: [tool('f'), tool('f')] }, 'tools[1].function.name', 'invalid_value'],
    [
      'with parameters that are no object',
      { tools: [tool('f', { parameters: [] })] },
      'tools[0].function.parameters',
      'invalid_value',
    ],
    [
      'with parameters too deep',
      { tools: [tool('f', { parameters: deep(65) })] },
      'tools[0].function.parameters',
      'invalid_value',
    ],
    [
      'with parameters of another type',
      { tools: [tool('f', { parameters: { type: 'string' } })] },
      'tools[0].function.parameters.type',
      'invalid_value',
    ],
    ['with an unknown field', { tools: [tool('f', { foo: 1 })] }, 'tools[0].function.foo', 'unknown_parameter'],
    ['required where there are none', { tool_choice: 'required' }, 'tool_choice', 'invalid_value'],
    ['chosen in an unknown way', { tools: [tool('f')], tool_choice: 'any' }, 'tool_choice', 'invalid_value'],
    [
      'chosen and not there',
      { tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'g' } } },
      'tool_choice.function.name',
      'invalid_value',
    ],
    ['parallel by a word', { tools: [tool('f')], parallel_tool_calls: 'yes' }, 'parallel_tool_calls', 'invalid_value'],
  ])('may not be %s', (_, fields, param, code) => {
    expect(() => chat(fields)).toThrow(refusal(param, code));
  });

  test('may have parameters as deep as allowed', () => {
    expect(() => chat({ tools: [tool('f', { parameters: deep(63) })] })).not.toThrow();
  });
});

describe('the chat template', () => {
  test('ends in a generation prompt unless the last message is continued', () => {
    expect(chat({}).template).toEqual({
      addGenerationPrompt: true,
      continueFinalMessage: false,
      variables: {},
      reasoningEffort: null,
    });
    expect(chat({ continue_final_message: true }).template).toMatchObject({
      addGenerationPrompt: false,
      continueFinalMessage: true,
    });
    expect(chat({ add_generation_prompt: false }).template).toMatchObject({
      addGenerationPrompt: false,
      continueFinalMessage: false,
    });
  });

  test('gets scalar variables', () => {
    const variables = { enable_thinking: false, date: 'today', budget: 5 };
    expect(chat({ chat_template_kwargs: variables, reasoning_effort: 'low' }).template).toMatchObject({
      variables,
      reasoningEffort: 'low',
    });
  });

  test.each<readonly [string, object, string, string]>([
    ['both at once', { continue_final_message: true, add_generation_prompt: true }, 'continue_final_message', 'invalid_value'],
    ['of the request', { chat_template: '{{ messages }}' }, 'chat_template', 'unsupported_parameter'],
    ['given messages', { chat_template_kwargs: { messages: 'x' } }, 'chat_template_kwargs.messages', 'invalid_value'],
    ['given tools', { chat_template_kwargs: { tools: 'x' } }, 'chat_template_kwargs.tools', 'invalid_value'],
    [
      'given a generation prompt',
      { chat_template_kwargs: { add_generation_prompt: false } },
      'chat_template_kwargs.add_generation_prompt',
      'invalid_value',
    ],
    ['given a list', { chat_template_kwargs: { documents: [] } }, 'chat_template_kwargs.documents', 'invalid_value'],
    ['given a long text', { chat_template_kwargs: { date: 'x'.repeat(1025) } }, 'chat_template_kwargs.date', 'invalid_value'],
    [
      'given many variables',
      { chat_template_kwargs: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`v${i}`, 1])) },
      'chat_template_kwargs',
      'invalid_value',
    ],
    ['given an unknown effort', { reasoning_effort: 'much' }, 'reasoning_effort', 'invalid_value'],
  ])('may not be %s', (_, fields, param, code) => {
    expect(() => chat(fields)).toThrow(refusal(param, code));
  });

  test('is not given a name that is none', () => {
    expect(() => chat({ chat_template_kwargs: { 'a b': 1 } })).toThrow(refusal('chat_template_kwargs.a b'));
  });
});
