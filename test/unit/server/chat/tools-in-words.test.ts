import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../../src/engine/engine.ts';
import { ToolCallParser } from '../../../../src/server/chat/tool-call-parser.ts';
import type { Tool } from '../../../../src/server/chat/tools.ts';
import { tellTools } from '../../../../src/server/chat/tools-in-words.ts';

const weather: Tool = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { place: { type: 'string' } } } },
};
const call = (place: string) => ({
  id: `call-${place}`,
  type: 'function' as const,
  function: { name: 'weather', arguments: { place } },
});
const result = (place: string): ChatMessage => ({ role: 'tool', content: `${place}: sun`, tool_call_id: `call-${place}` });
const user: ChatMessage = { role: 'user', content: 'What is it like?' };

describe('tools told in messages', () => {
  it('are described in a system message of their own, or behind what there is', () => {
    const [system, ...rest] = tellTools([user], [weather]);
    expect(system!.role).toBe('system');
    expect(system!.content).toContain(JSON.stringify(weather));
    expect(rest).toEqual([user]);
    const own = tellTools([{ role: 'system', content: 'Be brief.' }, user], [weather]);
    expect(own.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(own[0]!.content).toBe(`Be brief.\n\n${system!.content}`);
  });

  it('leave messages alone where there are none', () => {
    const messages: ChatMessage[] = [{ role: 'system', content: 'Be brief.' }, user, { role: 'assistant', content: 'Sunny.' }];
    expect(tellTools(messages, [])).toEqual(messages);
  });

  it('show earlier calls as the text that makes them, and their results together as the user’s', () => {
    const messages: ChatMessage[] = [
      user,
      { role: 'assistant', content: 'Let me look.', tool_calls: [call('Rome'), call('Oslo')] },
      result('Rome'),
      result('Oslo'),
      { role: 'assistant', content: 'Sunny.' },
    ];
    const told = tellTools(messages, []);
    expect(told.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(told[1]).not.toHaveProperty('tool_calls');
    const parser = new ToolCallParser();
    const pieces = [...parser.push(told[1]!.content), ...parser.finish()];
    expect(pieces.filter(({ kind }) => kind === 'call').map((piece) => 'name' in piece && piece.name)).toEqual([
      'weather',
      'weather',
    ]);
    expect(pieces.flatMap((piece) => (piece.kind === 'arguments' ? piece.text : [])).join('')).toBe(
      '{"place":"Rome"}{"place":"Oslo"}',
    );
    expect(told[1]!.content).toMatch(/^Let me look\./);
    expect(told[2]!.content).toBe('<tool_response>\nRome: sun\n</tool_response>\n<tool_response>\nOslo: sun\n</tool_response>');
  });
});
