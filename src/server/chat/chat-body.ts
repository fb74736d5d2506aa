/** The body of `POST /v1/chat/completions`, from JSON to the rendered prompt and the shape of the answer. */
import { chatFormat } from '../chat-format.ts';
import type { ParseBody } from '../parsed-request.ts';
import { checkTextLength } from '../prompt-text.ts';
import { createChatRequestParser } from '../schemas/chat-request.ts';
import type { RequestLimits } from '../server-config.ts';

export function createChatBodyParser(limits: RequestLimits): ParseBody {
  const parse = createChatRequestParser(limits);
  return (body) => {
    const { params, messages } = parse(body);
    return {
      params,
      promptCount: 1,
      prompts(engine) {
        checkTextLength([messages.map(({ content }) => content).join('')], engine.info, 'messages');
        const text = engine.renderChat(messages);
        return [{ text, tokens: engine.encode(text, { addSpecialTokens: params.addSpecialTokens ?? false }) }];
      },
      format: () => chatFormat(),
      structure: () => ({ structure: params.structure?.structure ?? null, structureAfter: null }),
    };
  };
}
