/** The body of `POST /v1/chat/completions`, from JSON to the rendered prompt and the shape of the answer. */
import type { ParseBody } from '../parsed-request.ts';
import { createChatRequestParser } from '../schemas/chat-request.ts';
import type { ServerConfig } from '../server-config.ts';
import { prepareChat } from './prepare-chat.ts';

export function createChatBodyParser({ limits, reasoningParser }: Pick<ServerConfig, 'limits' | 'reasoningParser'>): ParseBody {
  const parse = createChatRequestParser(limits);
  return (body) => {
    const request = parse(body);
    return {
      params: request.params,
      promptCount: 1,
      prepare: (engine, signal) =>
        prepareChat(request, engine, { parser: reasoningParser, maxGrammarLength: limits.maxGrammarLength, signal }),
    };
  };
}
