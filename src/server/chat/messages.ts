/** The messages of a chat, from the request's JSON to what chat templates know. */
import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import type { ChatMessage, ChatToolCall } from '../../engine/engine.ts';
import { boundedArray, isPlainObject } from '../schemas/bounded.ts';
import { jsonSchema } from '../schemas/json-schema.ts';
import { NEUTRAL_MESSAGE_FIELDS } from '../schemas/neutral-field.ts';
import { fieldError } from '../schemas/parse-request.ts';
import { isShallow, MAX_DEPTH } from './json-depth.ts';
import { FUNCTION_NAME } from './tools.ts';

const MAX_CONTENT_PARTS = 1024;
const MAX_CALLS = 128;
const MAX_CALL_ID = 256;

/** What clients add of their own to an answer that they send back. */
const clientsOwn = () => z.unknown().optional();

const callId = () => z.string().min(1).max(MAX_CALL_ID).describe(`a string of 1 to ${MAX_CALL_ID} characters`);

const toolCallSchema = z
  .strictObject({
    id: callId(),
    type: z.literal('function').describe('"function"'),
    index: clientsOwn(),
    function: z
      .strictObject({
        name: z.string().regex(FUNCTION_NAME).describe('1 to 64 letters, digits, underscores and dashes'),
        arguments: z.string().describe('the JSON text of an object'),
        parsed_arguments: clientsOwn(),
      })
      .describe('an object with name and arguments'),
  })
  .describe('{"id": …, "type": "function", "function": {"name": …, "arguments": …}}');

const textPart = z.strictObject({ type: z.literal('text'), text: z.string() });

/** What no role rules out; the rest is checked by {@link toChatMessage}. */
export const messageSchema = z.strictObject({
  role: z
    .enum(['system', 'developer', 'user', 'assistant', 'tool'])
    .describe('"system", "developer", "user", "assistant" or "tool", the roles this server supports'),
  content: z
    .custom<string | readonly unknown[] | null>(
      (value) => value === null || typeof value === 'string' || (Array.isArray(value) && isPartCount(value.length)),
    )
    .meta(jsonSchema(z.union([z.string(), z.array(textPart).min(1).max(MAX_CONTENT_PARTS), z.null()])))
    .optional()
    .describe(`a string or a list of 1 to ${MAX_CONTENT_PARTS} text parts {"type": "text", "text": …}`),
  name: z
    .string()
    .regex(/^[^\s<|\\/>]{1,64}$/)
    .nullish()
    .describe('1 to 64 characters without blanks, slashes, bars and angle brackets'),
  reasoning: z.string().nullish().describe('a string'),
  reasoning_content: z.string().nullish().describe('a string'),
  tool_calls: boundedArray(toolCallSchema, MAX_CALLS, 0).nullish().describe(`a list of up to ${MAX_CALLS} tool calls`),
  tool_call_id: callId().nullish(),
  parsed: clientsOwn(),
  ...NEUTRAL_MESSAGE_FIELDS,
});

type Message = z.infer<typeof messageSchema>;

/**
 * @param path of the message in the request
 * @throws AppError `invalid_request` for what the message's role does not have, or lacks
 */
export function toChatMessage(message: Message, path: string): ChatMessage {
  const { role, name, tool_call_id: answered } = message;
  const calls = message.tool_calls ?? [];
  const reasoning = message.reasoning_content ?? message.reasoning ?? null;
  if (role !== 'assistant') {
    if (calls.length > 0) throw fieldError(`${path}.tool_calls`, 'absent unless role is "assistant"', calls);
    if (reasoning !== null) throw fieldError(`${path}.reasoning_content`, 'absent unless role is "assistant"', reasoning);
  }
  if (role === 'tool' && answered == null) {
    throw fieldError(`${path}.tool_call_id`, 'the id of the call that the message answers', undefined, 'missing_parameter');
  }
  if (role !== 'tool' && answered != null) throw fieldError(`${path}.tool_call_id`, 'absent unless role is "tool"', answered);
  return {
    // OpenAI's newer name of the same role; chat templates know the older one and drop what they do not know.
    role: role === 'developer' ? 'system' : role,
    // Templates take the length of contents and look into them, so that one without text is an empty one.
    content: calls.length > 0 && message.content == null ? '' : toText(message.content, `${path}.content`),
    ...(name == null ? {} : { name }),
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call, i) => toToolCall(call, `${path}.tool_calls[${i}]`)) }),
    ...(answered == null ? {} : { tool_call_id: answered }),
  };
}

function toText(content: Message['content'], path: string): string {
  if (content == null) throw fieldError(path, 'a string or a list of text parts', content, 'missing_parameter');
  return typeof content === 'string' ? content : content.map((part, i) => partText(part, `${path}[${i}]`)).join('\n');
}

function partText(part: unknown, path: string): string {
  if (!isPlainObject(part)) throw fieldError(path, 'a text part {"type": "text", "text": …}', part);
  const { type, text, ...rest } = part as { readonly type?: unknown; readonly text?: unknown };
  if (typeof type === 'string' && type !== 'text') {
    throw new AppError(
      'invalid_request',
      `Expected ${path}.type to be "text", got ${JSON.stringify(type.slice(0, 60))}: this server does not support it. Leave it out.`,
      { details: { param: `${path}.type`, code: 'unsupported_parameter' } },
    );
  }
  const [unknownKey] = Object.keys(rest);
  if (type !== 'text' || typeof text !== 'string' || unknownKey !== undefined) {
    throw fieldError(path, 'a text part {"type": "text", "text": …}', part);
  }
  return text;
}

/** Templates print arguments as JSON, for which they need the values. */
function toToolCall({ id, type, function: called }: z.infer<typeof toolCallSchema>, path: string): ChatToolCall {
  const parsed = called.arguments.trim() === '' ? {} : parseOrUndefined(called.arguments);
  if (!isPlainObject(parsed) || !isShallow(parsed)) {
    const expected = `the JSON text of an object of up to ${MAX_DEPTH} levels`;
    throw fieldError(`${path}.function.arguments`, expected, called.arguments);
  }
  return { id, type, function: { name: called.name, arguments: parsed } };
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isPartCount(count: number): boolean {
  return count >= 1 && count <= MAX_CONTENT_PARTS;
}
