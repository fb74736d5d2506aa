/** Requests that wait for a sequence, in the order in which they will get one. */
import type { RunningRequest } from './running-request.ts';

/** Lower ranks first, and among equals whoever was pushed first. */
export class WaitingQueue implements Iterable<RunningRequest> {
  readonly #requests: RunningRequest[] = [];

  get length(): number {
    return this.#requests.length;
  }

  /** Who is next. */
  get first(): RunningRequest | undefined {
    return this.#requests[0];
  }

  push(request: RunningRequest): void {
    const behind = this.#requests.findLastIndex(({ rank }) => rank <= request.rank);
    this.#requests.splice(behind + 1, 0, request);
  }

  /** @returns whether it waited */
  remove(request: RunningRequest): boolean {
    const index = this.#requests.indexOf(request);
    if (index < 0) return false;
    this.#requests.splice(index, 1);
    return true;
  }

  [Symbol.iterator](): Iterator<RunningRequest> {
    return this.#requests[Symbol.iterator]();
  }
}
