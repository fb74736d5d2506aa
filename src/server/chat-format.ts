import type { TokensEvent } from '../core/decode-event.ts';
import type { AnswerFinish, AnswerFormat, ChoiceWriter } from './answer-format.ts';

/** The shape of `/v1/chat/completions`. */
export function chatFormat(): AnswerFormat {
  return {
    idPrefix: 'chatcmpl-',
    object: 'chat.completion',
    chunkObject: 'chat.completion.chunk',
    promptParam: 'messages',
    promptLogprobs: null,
    writer: (index) => new ChatWriter(index),
  };
}

class ChatWriter implements ChoiceWriter {
  readonly #index: number;
  #text = '';

  constructor(index: number) {
    this.#index = index;
  }

  opening(): object {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  delta({ text }: TokensEvent): readonly object[] {
    this.#text += text;
    // A round whose text is all held back says nothing yet.
    return text === '' ? [] : [this.#chunk({ content: text })];
  }

  final(finish: AnswerFinish): readonly object[] {
    return [{ ...this.#chunk({}), finish_reason: finish.reason, stop_reason: finish.stopReason }];
  }

  whole(finish: AnswerFinish): object {
    return {
      index: this.#index,
      message: { role: 'assistant', content: this.#text, refusal: null },
      logprobs: null,
      finish_reason: finish.reason,
      stop_reason: finish.stopReason,
    };
  }

  answerFields(): object {
    return {};
  }

  #chunk(delta: object): object {
    return { index: this.#index, delta, logprobs: null, finish_reason: null };
  }
}
