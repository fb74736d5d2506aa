/** Requests under way: how many one caller may have at a time, and how long each may take. */
import { abortWith } from '../core/abort-with.ts';
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import type { Caller } from './api-keys.ts';
import type { ServerConfig } from './server-config.ts';

/** Of HTTP and WebSocket together. */
export class RequestTurns {
  readonly #most: number | null;
  readonly #timeoutMs: number | null;
  readonly #running = new Map<Caller, number>();

  constructor({ maxRequestsPerKey, requestTimeoutMs }: Pick<ServerConfig, 'maxRequestsPerKey' | 'requestTimeoutMs'>) {
    this.#most = maxRequestsPerKey;
    this.#timeoutMs = requestTimeoutMs;
  }

  /**
   * @param left aborts when nobody waits for the answer any more
   * @throws AppError `rate_limited`
   */
  begin(caller: Caller, left: AbortSignal): RequestTurn {
    const running = this.#running.get(caller) ?? 0;
    if (this.#most !== null && running >= this.#most) {
      throw new AppError(
        'rate_limited',
        `Expected at most ${this.#most} requests at a time, got one more. Wait for an answer to end.`,
      );
    }
    this.#running.set(caller, running + 1);
    return new RequestTurn(left, this.#timeoutMs, () => this.#end(caller));
  }

  #end(caller: Caller): void {
    const left = (this.#running.get(caller) ?? 0) - 1;
    if (left > 0) this.#running.set(caller, left);
    else this.#running.delete(caller);
  }
}

/** One request from its arrival to the end of its answer, when it is to be disposed of, once or more. */
export class RequestTurn implements Disposable {
  readonly #abort = new AbortController();
  readonly #following: Disposable;
  readonly #timer: NodeJS.Timeout | undefined;
  #onEnd: (() => void) | null;

  /** @param timeoutMs null: any */
  constructor(left: AbortSignal, timeoutMs: number | null, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#following = abortWith(this.#abort, left);
    if (timeoutMs !== null) this.#timer = setTimeout(() => this.#abort.abort(timeoutError(timeoutMs)), timeoutMs);
  }

  /** Aborts when nobody waits for the answer any more, or when its time is up: then with the refusal as the reason. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Nobody waits for the answer any more. */
  abandon(): void {
    this.#abort.abort();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#following[Symbol.dispose]();
    this.#onEnd?.();
    this.#onEnd = null;
  }
}

/** Why a request whose signal aborted has no answer. */
export function abortReason({ reason }: AbortSignal): AppError {
  return reason instanceof AppError ? reason : new AbortedError('The request', reason);
}

/**
 * Work on a request.
 * @throws as the work does, but for an abort the reason of it
 */
export async function whileWaitedFor<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw signal.aborted && error instanceof AbortedError ? abortReason(signal) : error;
  }
}

function timeoutError(timeoutMs: number): AppError {
  return new AppError(
    'timeout',
    `Expected an answer that ends within ${timeoutMs / 1000} s, got a longer one. Ask for fewer tokens, or later.`,
  );
}
