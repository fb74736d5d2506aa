/** From a checked chat request to what a model is given, and what its answer is expected to be. */
import type { ChatMessage, Engine } from '../../engine/engine.ts';
import { chatFormat } from '../chat-format.ts';
import type { PreparedRequest } from '../parsed-request.ts';
import { checkTextLength } from '../prompt-text.ts';
import type { ChatRequest } from '../schemas/chat-request.ts';
import { fieldError } from '../schemas/parse-request.ts';
import { expectedReasoning, type ReasoningParser, structureAfter } from './reasoning.ts';
import { templateVariables } from './template-fields.ts';
import { toolStructure } from './tool-structure.ts';
import { tellTools } from './tools-in-words.ts';

export interface PrepareChatOptions {
  readonly parser: ReasoningParser;
  /** Of the structure that tools make. */
  readonly maxGrammarLength: number;
  readonly signal: AbortSignal;
}

/**
 * @throws AppError `invalid_request` for what this model cannot do, `context_length_exceeded` for more than fits by far;
 *   AbortedError
 */
export async function prepareChat(
  request: ChatRequest,
  engine: Engine,
  { parser, maxGrammarLength, signal }: PrepareChatOptions,
): Promise<PreparedRequest> {
  const { messages, params, template, toolUse } = request;
  const { info } = engine;
  const variables = templateVariables(template, info);
  checkTextLength([messages.map(textOf).join('')], info, 'messages');
  if (toolUse !== null) checkTextLength([JSON.stringify(toolUse.tools)], info, 'tools');
  const showsTools = info.chatVariables.includes('tools');
  const told = showsTools ? messages : tellTools(messages, toolUse?.tools ?? []);
  const text = engine.text.renderChat(told, {
    addGenerationPrompt: template.addGenerationPrompt,
    continueFinalMessage: template.continueFinalMessage,
    tools: showsTools ? (toolUse?.tools ?? null) : null,
    variables,
  });
  // A template may show a message more than once.
  checkTextLength([text], info, 'messages');
  const continued = template.continueFinalMessage ? messages.at(-1)! : null;
  const reasoning = expectedReasoning(parser, engine, { text, continued });
  const asked = params.structure?.structure ?? null;
  const structure = toolUse === null ? asked : toolStructure(toolUse, asked);
  if (structure?.kind === 'structural-tag' && structure.tag.length > maxGrammarLength) {
    throw fieldError('tools', `tools that take up to ${maxGrammarLength} characters as a structure`, structure.tag.length);
  }
  if (structure !== null && reasoning?.start === 'open' && reasoning.tags === null) {
    throw fieldError(
      params.structure?.param ?? 'tool_choice',
      'absent while the model reasons, as the end of its reasoning is no token',
      asked ?? toolUse?.choice,
    );
  }
  const [tokens] = await engine.text.encodeAll([text], { addSpecialTokens: params.addSpecialTokens ?? false }, signal);
  return {
    prompts: [{ text, tokens: tokens! }],
    format: chatFormat({
      engine,
      params,
      reasoning,
      includeReasoning: request.includeReasoning,
      maxCalls: toolUse === null ? 0 : toolUse.parallel ? Number.POSITIVE_INFINITY : 1,
    }),
    structure,
    structureAfter: structureAfter(reasoning),
  };
}

/** What of a message may be long. */
function textOf({ content, reasoning_content: reasoning = '', tool_calls: calls = [] }: ChatMessage): string {
  return content + reasoning + calls.map((call) => JSON.stringify(call.function.arguments)).join('');
}
