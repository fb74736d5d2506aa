/** Requests that wait for a sequence, in the order in which they will get one. */
import type { RunningRequest } from './running-request.ts';

/** Lower priorities first, and among equals whoever came first. */
export class WaitingQueue implements Iterable<RunningRequest> {
  readonly #requests: RunningRequest[] = [];
  #tokens = 0;

  get length(): number {
    return this.#requests.length;
  }

  /** Of all prompts. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Who is next. */
  get first(): RunningRequest | undefined {
    return this.#requests[0];
  }

  push(request: RunningRequest): void {
    const behind = this.#requests.findLastIndex(({ priority }) => priority <= request.priority);
    this.#requests.splice(behind + 1, 0, request);
    this.#tokens += request.request.promptTokens.length;
  }

  /** @returns whether it waited */
  remove(request: RunningRequest): boolean {
    const index = this.#requests.indexOf(request);
    if (index < 0) return false;
    this.#requests.splice(index, 1);
    this.#tokens -= request.request.promptTokens.length;
    return true;
  }

  [Symbol.iterator](): Iterator<RunningRequest> {
    return this.#requests[Symbol.iterator]();
  }
}
