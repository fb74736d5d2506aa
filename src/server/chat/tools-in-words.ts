/** Tools for models whose chat template shows none, told in messages as Hermes and Qwen models know them. */
import type { ChatMessage } from '../../engine/engine.ts';
import { CLOSE_CALL, OPEN_CALL } from './tool-call-parser.ts';
import type { Tool } from './tools.ts';

/**
 * Messages of the roles that every template has: the functions are described in the system message, earlier calls are text of
 * the assistant's, and what came of them is the user's to tell.
 * @param tools may be empty, where earlier calls are all that there is to tell
 */
export function tellTools(messages: readonly ChatMessage[], tools: readonly Tool[]): readonly ChatMessage[] {
  const told: ChatMessage[] = tools.length === 0 ? [] : [{ role: 'system', content: describe(tools) }];
  let wasResult = false;
  for (const message of messages) {
    const last = told.at(-1);
    const isResult = message.role === 'tool';
    if (message.role === 'system' && told.length === 1 && last?.role === 'system' && tools.length > 0) {
      told[0] = { ...message, content: `${message.content}\n\n${last.content}` };
    } else if (isResult && wasResult && last !== undefined) {
      told[told.length - 1] = { ...last, content: `${last.content}\n${resultText(message)}` };
    } else {
      told.push(isResult ? { role: 'user', content: resultText(message) } : withCallsAsText(message));
    }
    wasResult = isResult;
  }
  return told;
}

function describe(tools: readonly Tool[]): string {
  const signatures = tools.map((tool) => JSON.stringify(tool)).join('\n');
  return [
    'These functions can be called:',
    `<tools>\n${signatures}\n</tools>`,
    `To call one, write its name and arguments as JSON between tags:\n${callText('<name>', '<arguments>')}`,
  ].join('\n\n');
}

function withCallsAsText({ tool_calls: calls = [], ...message }: ChatMessage): ChatMessage {
  const texts = calls.map(({ function: { name, arguments: values } }) => callText(name, JSON.stringify(values)));
  return { ...message, content: [message.content, ...texts].filter((text) => text !== '').join('\n') };
}

function callText(name: string, values: string): string {
  return `${OPEN_CALL}\n{"name": ${JSON.stringify(name)}, "arguments": ${values}}\n${CLOSE_CALL}`;
}

function resultText({ content }: ChatMessage): string {
  return `<tool_response>\n${content}\n</tool_response>`;
}
