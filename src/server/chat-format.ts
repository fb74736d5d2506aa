import type { AnswerFormat } from './answer-format.ts';

/** The shapes of `/v1/chat/completions`. */
export const chatFormat: AnswerFormat = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  promptParam: 'messages',
  openingChoice: (index) => ({
    index,
    delta: { role: 'assistant', content: '' },
    logprobs: null,
    finish_reason: null,
  }),
  deltaChoice: (index, text) => ({ index, delta: { content: text }, logprobs: null, finish_reason: null }),
  finalChoice: (index, finish) => ({
    index,
    delta: {},
    logprobs: null,
    finish_reason: finish.reason,
    stop_reason: finish.stopReason,
  }),
  wholeChoice: (index, text, finish) => ({
    index,
    message: { role: 'assistant', content: text, refusal: null },
    logprobs: null,
    finish_reason: finish.reason,
    stop_reason: finish.stopReason,
  }),
};
