import { AnswerRecord } from './answer-record.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import { speculationSummary } from './request-metrics.ts';
import type { RequestStart, RequestTrace } from './request-tracer.ts';

export interface AccessOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Null: nobody follows the request. */
  readonly trace: RequestTrace | null;
  /** Asked again and again by machines: told at `debug` unless it fails. Default false. */
  readonly isProbe?: boolean;
}

/** One line per request, written once when the request has ended. */
export class AccessEntry {
  readonly record: AnswerRecord;
  readonly requestId: string;
  /** For all lines of the request: each has its id, and that of its trace. */
  readonly logger: Logger;
  /** The response is still being written when its handler returns; whoever writes it ends the entry. */
  isStreamed = false;
  readonly #start: Omit<RequestStart, 'requestId'>;
  readonly #options: AccessOptions;
  readonly #startedAt: number;
  #isWritten = false;

  constructor({ requestId, ...start }: RequestStart, options: AccessOptions) {
    const { logger, clock, trace } = options;
    this.requestId = requestId;
    this.logger = logger.child({ requestId, ...(trace === null ? {} : { traceId: trace.traceId }) });
    this.record = new AnswerRecord(trace);
    this.#start = start;
    this.#options = options;
    this.#startedAt = clock.monotonicMs();
  }

  /** `errorCode`: why there was no complete answer, also after status 200. */
  write(status: number, errorCode?: string): void {
    if (this.#isWritten) return;
    this.#isWritten = true;
    const { record } = this;
    const { clock, trace, isProbe = false } = this.#options;
    trace?.end(status, errorCode);
    this.logger[isProbe && status < 400 ? 'debug' : 'info'](
      {
        ...this.#start,
        status,
        durationMs: Math.round(clock.monotonicMs() - this.#startedAt),
        ...(errorCode === undefined ? {} : { errorCode }),
        ...(record.promptTokens === 0 ? {} : { promptTokens: record.promptTokens, completionTokens: record.completionTokens }),
        ...(record.finishes.length === 0 ? {} : speculationSummary(record.finishes)),
      },
      'request',
    );
  }
}
