import { z } from 'zod';
import type { ChatMessage } from '../../engine/engine.ts';
import { messageSchema, toChatMessage } from '../chat/messages.ts';
import { TEMPLATE_FIELDS, type TemplateRequest, toTemplateRequest } from '../chat/template-fields.ts';
import { TOOL_FIELDS, type ToolUse, toToolUse } from '../chat/tools.ts';
import type { RequestLimits } from '../server-config.ts';
import { boundedArray } from './bounded.ts';
import { CHAT_LOGPROB_FIELDS, chatLogprobCount } from './detail-fields.ts';
import { type GenerationParams, generationFields, maxTokensField, toGenerationParams } from './generation-fields.ts';
import { NEUTRAL_CHAT_FIELDS, NEUTRAL_FIELDS } from './neutral-field.ts';
import { fieldError, parseRequest } from './parse-request.ts';

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly params: GenerationParams;
  readonly template: TemplateRequest;
  /** Null: the model is to call nothing. */
  readonly toolUse: ToolUse | null;
  /** Tell the reasoning of the answer. */
  readonly includeReasoning: boolean;
}

/** Parses the body of `POST /v1/chat/completions`. */
export type ParseChatRequest = (body: unknown) => ChatRequest;

export function chatRequestSchema(limits: RequestLimits) {
  return z.strictObject({
    ...generationFields(limits),
    ...NEUTRAL_FIELDS,
    ...NEUTRAL_CHAT_FIELDS,
    ...CHAT_LOGPROB_FIELDS,
    ...TEMPLATE_FIELDS,
    ...TOOL_FIELDS,
    include_reasoning: z.boolean().nullish().describe('true or false'),
    messages: boundedArray(messageSchema, limits.maxMessages).describe(`a list of 1 to ${limits.maxMessages} messages`),
    max_tokens: maxTokensField(),
    max_completion_tokens: maxTokensField(),
  });
}

/** @throws (the parser) AppError `invalid_request` naming the field that cannot be served as written. */
export function createChatRequestParser(limits: RequestLimits): ParseChatRequest {
  const schema = chatRequestSchema(limits);
  return (body) => {
    const fields = parseRequest(schema, body);
    const { max_tokens: maxTokens, max_completion_tokens: maxCompletionTokens } = fields;
    if (maxTokens != null && maxCompletionTokens != null && maxTokens !== maxCompletionTokens) {
      throw fieldError('max_tokens', `absent or equal to max_completion_tokens (${maxCompletionTokens})`, maxTokens);
    }
    return {
      messages: fields.messages.map((message, i) => toChatMessage(message, `messages[${i}]`)),
      params: toGenerationParams(
        fields,
        { maxTokens: maxCompletionTokens ?? maxTokens ?? null, logprobs: chatLogprobCount(fields) },
        limits,
      ),
      template: toTemplateRequest(fields),
      toolUse: toToolUse(fields),
      includeReasoning: fields.include_reasoning ?? true,
    };
  };
}
