import type { FinishEvent } from '../core/decode-event.ts';

/** Why an answer ended, as it is told: `aborted` never reaches a caller, who is gone or gets an error. */
export type AnswerFinish = Pick<FinishEvent, 'stopReason'> & { readonly reason: 'stop' | 'length' };

/** What differs between the two routes in the shape of an answer. One object per route. */
export interface AnswerFormat {
  readonly idPrefix: string;
  /** `object` of a whole answer. */
  readonly object: string;
  /** `object` of a streamed chunk. */
  readonly chunkObject: string;
  /** The request field that holds the prompt. */
  readonly promptParam: string;
  /** The choice that opens a stream before any text; null when there is none. */
  openingChoice(index: number): object | null;
  deltaChoice(index: number, text: string): object;
  finalChoice(index: number, finish: AnswerFinish): object;
  wholeChoice(index: number, text: string, finish: AnswerFinish): object;
}
