import type { FinishEvent, TokensEvent } from '../core/decode-event.ts';
import type { TokenId } from '../core/token.ts';

/** Why an answer ended, as it is told: `aborted` never reaches a caller, who is gone or gets an error. */
export type AnswerFinish = Pick<FinishEvent, 'stopReason'> & { readonly reason: 'stop' | 'length' };

/** What the model is given. */
export interface EncodedPrompt {
  /** Null when the caller sent token ids. */
  readonly text: string | null;
  readonly tokens: readonly TokenId[];
}

/** Makes the JSON of one choice out of its events, streamed or whole; one object per choice of a request. */
export interface ChoiceWriter {
  /** The choice that opens a stream before any text; null when there is none. */
  opening(): object | null;
  /** Choices of the chunks that these tokens give rise to; empty when they say nothing yet. */
  delta(event: TokensEvent): readonly object[];
  /** Choices of the last chunks, the one with the reason of its end last. */
  final(finish: AnswerFinish): readonly object[];
  /** The choice of a whole answer, after all of its events went through `delta`. */
  whole(finish: AnswerFinish): object;
  /**
   * Fields of the answer itself that this choice knows: asked of choice 0, with the opening of a stream and at the end of
   * a whole answer.
   */
  answerFields(): object;
  /** Tokens of its reasoning so far; null where that is not told apart. */
  readonly reasoningTokens: number | null;
}

/** The shape of one request's answer; a function of each route makes it out of what was asked for. */
export interface AnswerFormat {
  readonly idPrefix: string;
  /** `object` of a whole answer. */
  readonly object: string;
  /** `object` of a streamed chunk. */
  readonly chunkObject: string;
  /** The request field that holds the prompt. */
  readonly promptParam: string;
  /** How many rivals of each prompt token the writers want to know; null: no logprobs. */
  readonly promptLogprobs: number | null;
  /** Special tokens whose text the writers need to see. */
  readonly shownTokens: readonly TokenId[];
  /** @param index of the choice, which answers the prompt */
  writer(index: number, prompt: EncodedPrompt): ChoiceWriter;
}
