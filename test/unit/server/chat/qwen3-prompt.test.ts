/** Qwen3's own template: what it makes of calls, and what the parsers make of it again. */

import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { ModelText } from '../../../../src/engine/engine.ts';
import { expectedReasoning } from '../../../../src/server/chat/reasoning.ts';
import { ToolCallParser } from '../../../../src/server/chat/tool-call-parser.ts';
import { createChatRequestParser } from '../../../../src/server/schemas/chat-request.ts';
import { DEFAULT_SERVER_CONFIG } from '../../../../src/server/server-config.ts';
import { type ChatTemplate, loadChatTemplate } from '../../../../src/text/chat-template.ts';

const parse = createChatRequestParser(DEFAULT_SERVER_CONFIG.limits);
const call = (id: string, text: string) => ({ id, type: 'function', function: { name: 'weather', arguments: text } });
const MESSAGES = [
  { role: 'user', content: 'How is it in Rome and Oslo?' },
  {
    role: 'assistant',
    content: null,
    reasoning: 'hm',
    tool_calls: [call('1', '{"place":"Rome"}'), call('2', '{"place":"Oslo"}')],
  },
  { role: 'tool', tool_call_id: '1', content: 'sun' },
  { role: 'tool', tool_call_id: '2', content: 'rain' },
];

let template: ChatTemplate;
beforeAll(async () => {
  template = await loadChatTemplate(join(import.meta.dirname, '../../../golden/fixtures/tokenizer-qwen3'));
});

function render(fields: object): string {
  const { messages, template: asked, toolUse } = parse({ messages: MESSAGES, ...fields });
  const { addGenerationPrompt, continueFinalMessage, variables } = asked;
  const tools = toolUse === null ? {} : { tools: toolUse.tools };
  return template.render(messages, { addGenerationPrompt, continueFinalMessage, variables, ...tools });
}

test('shows calls and what came of them as it was trained to', () => {
  expect(render({})).toBe(
    [
      '<|im_start|>user',
      'How is it in Rome and Oslo?<|im_end|>',
      '<|im_start|>assistant',
      '<think>',
      'hm',
      '</think>',
      '',
      '<tool_call>',
      '{"name": "weather", "arguments": {"place": "Rome"}}',
      '</tool_call>',
      '<tool_call>',
      '{"name": "weather", "arguments": {"place": "Oslo"}}',
      '</tool_call><|im_end|>',
      '<|im_start|>user',
      '<tool_response>',
      'sun',
      '</tool_response>',
      '<tool_response>',
      'rain',
      '</tool_response><|im_end|>',
      '<|im_start|>assistant',
      '',
    ].join('\n'),
  );
});

test('what it shows of calls is parsed to the same calls', () => {
  const shown = render({}).split('</think>')[1]!.split('<|im_end|>')[0]!;
  const parser = new ToolCallParser();
  const text = [...parser.push(shown), ...parser.finish()].flatMap((piece) => (piece.kind === 'arguments' ? piece.text : []));
  expect(text).toEqual(['{"place": "Rome"}', '{"place": "Oslo"}']);
});

test('shows tools, and reads the variables that it is known for', () => {
  const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
  expect(render({ tools: [tool] })).toContain(`<tools>\n{"type": "function", "function": {"name": "weather",`);
  expect([...template.variables]).toEqual(['tools', 'messages', 'add_generation_prompt', 'enable_thinking']);
});

test.each([
  [{}, 'undecided'],
  [{ chat_template_kwargs: { enable_thinking: false } }, 'closed'],
])('leaves the reasoning, with %j, %s', (fields, start) => {
  const engine = { text: { tokenId: () => null, decode: () => '' } as unknown as ModelText };
  expect(expectedReasoning('qwen3', engine, { text: render(fields), continued: null })).toEqual({ start, tags: null });
});
