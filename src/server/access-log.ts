import { AnswerRecord } from './answer-record.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import { speculationSummary } from './request-metrics.ts';

export interface AccessStart {
  readonly requestId: string;
  readonly transport: 'http' | 'ws';
  readonly method: string;
  readonly path: string;
}

/** One line per request, written once when the request has ended. */
export class AccessEntry {
  readonly record = new AnswerRecord();
  /** The response is still being written when its handler returns; whoever writes it ends the entry. */
  isStreamed = false;
  readonly #logger: Logger;
  readonly #start: AccessStart;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #isWritten = false;

  constructor(logger: Logger, start: AccessStart, clock: Clock) {
    this.#logger = logger;
    this.#start = start;
    this.#clock = clock;
    this.#startedAt = clock.monotonicMs();
  }

  get requestId(): string {
    return this.#start.requestId;
  }

  /** `errorCode`: why there was no complete answer, also after status 200. */
  write(status: number, errorCode?: string): void {
    if (this.#isWritten) return;
    this.#isWritten = true;
    const { record } = this;
    this.#logger.info('request', {
      ...this.#start,
      status,
      durationMs: Math.round(this.#clock.monotonicMs() - this.#startedAt),
      ...(errorCode === undefined ? {} : { error: errorCode }),
      ...(record.promptTokens === 0 ? {} : { promptTokens: record.promptTokens, completionTokens: record.completionTokens }),
      ...(record.finishes.length === 0 ? {} : speculationSummary(record.finishes)),
    });
  }
}
