import { z } from 'zod';
import type { ChatMessage } from '../../engine/engine.ts';
import type { RequestLimits } from '../server-config.ts';
import { boundedArray } from './bounded.ts';
import { CHAT_LOGPROB_FIELDS, chatLogprobCount } from './detail-fields.ts';
import { type GenerationParams, generationFields, maxTokensField, toGenerationParams } from './generation-fields.ts';
import { NEUTRAL_CHAT_FIELDS, NEUTRAL_FIELDS, NEUTRAL_MESSAGE_FIELDS } from './neutral-field.ts';
import { fieldError, parseRequest } from './parse-request.ts';

const MAX_CONTENT_PARTS = 1024;

const textPart = z.strictObject({ type: z.literal('text'), text: z.string() });

const messageSchema = z.strictObject({
  role: z
    .enum(['system', 'developer', 'user', 'assistant'])
    .describe('"system", "developer", "user" or "assistant", the roles this server supports'),
  content: z
    .union([z.string(), boundedArray(textPart, MAX_CONTENT_PARTS)])
    .describe('a string or a list of text parts {"type": "text", "text": …}, the only parts this server supports'),
  ...NEUTRAL_MESSAGE_FIELDS,
});

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly params: GenerationParams;
}

/** Parses the body of `POST /v1/chat/completions`. */
export type ParseChatRequest = (body: unknown) => ChatRequest;

/** @throws (the parser) AppError `invalid_request` naming the field that cannot be served as written. */
export function createChatRequestParser(limits: RequestLimits): ParseChatRequest {
  const schema = z.strictObject({
    ...generationFields(limits),
    ...NEUTRAL_FIELDS,
    ...NEUTRAL_CHAT_FIELDS,
    ...CHAT_LOGPROB_FIELDS,
    messages: boundedArray(messageSchema, limits.maxMessages).describe(`a list of 1 to ${limits.maxMessages} messages`),
    max_tokens: maxTokensField(),
    max_completion_tokens: maxTokensField(),
  });
  return (body) => {
    const fields = parseRequest(schema, body);
    const { max_tokens: maxTokens, max_completion_tokens: maxCompletionTokens } = fields;
    if (maxTokens != null && maxCompletionTokens != null && maxTokens !== maxCompletionTokens) {
      throw fieldError('max_tokens', `absent or equal to max_completion_tokens (${maxCompletionTokens})`, maxTokens);
    }
    return {
      messages: fields.messages.map(toChatMessage),
      params: toGenerationParams(
        fields,
        { maxTokens: maxCompletionTokens ?? maxTokens ?? null, logprobs: chatLogprobCount(fields) },
        limits,
      ),
    };
  };
}

function toChatMessage(message: z.infer<typeof messageSchema>): ChatMessage {
  return {
    // OpenAI's newer name of the same role; chat templates know the older one and drop what they do not know.
    role: message.role === 'developer' ? 'system' : message.role,
    content: typeof message.content === 'string' ? message.content : message.content.map((part) => part.text).join('\n'),
  };
}
