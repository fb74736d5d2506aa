import type { AnswerFormat } from './answer-format.ts';

/** The shapes of `/v1/completions`. */
export const completionFormat: AnswerFormat = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  chunkObject: 'text_completion',
  promptParam: 'prompt',
  openingChoice: () => null,
  deltaChoice: (index, text) => ({ index, text, logprobs: null, finish_reason: null, stop_reason: null }),
  finalChoice: (index, finish) => ({
    index,
    text: '',
    logprobs: null,
    finish_reason: finish.reason,
    stop_reason: finish.stopReason,
  }),
  wholeChoice: (index, text, finish) => ({
    index,
    text,
    logprobs: null,
    finish_reason: finish.reason,
    stop_reason: finish.stopReason,
  }),
};
