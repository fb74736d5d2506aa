import type { TokensEvent } from '../core/decode-event.ts';
import type { AnswerFinish, AnswerFormat, ChoiceWriter } from './answer-format.ts';

/** The shape of `/v1/completions`. */
export function completionFormat(): AnswerFormat {
  return {
    idPrefix: 'cmpl-',
    object: 'text_completion',
    chunkObject: 'text_completion',
    promptParam: 'prompt',
    writer: (index) => new CompletionWriter(index),
  };
}

class CompletionWriter implements ChoiceWriter {
  readonly #index: number;
  #text = '';

  constructor(index: number) {
    this.#index = index;
  }

  opening(): null {
    return null;
  }

  delta({ text }: TokensEvent): readonly object[] {
    this.#text += text;
    // A round whose text is all held back says nothing yet.
    return text === '' ? [] : [this.#choice(text, null)];
  }

  final(finish: AnswerFinish): readonly object[] {
    return [this.#choice('', finish)];
  }

  whole(finish: AnswerFinish): object {
    return this.#choice(this.#text, finish);
  }

  answerFields(): object {
    return {};
  }

  #choice(text: string, finish: AnswerFinish | null): object {
    return {
      index: this.#index,
      text,
      logprobs: null,
      finish_reason: finish?.reason ?? null,
      stop_reason: finish?.stopReason ?? null,
    };
  }
}
