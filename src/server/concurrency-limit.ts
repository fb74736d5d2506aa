import { AppError } from '../core/app-error.ts';
import type { Caller } from './api-keys.ts';

/** Counts the requests of each caller that are under way, over HTTP and WebSocket together. */
export class ConcurrencyLimit {
  readonly #most: number | null;
  readonly #running = new Map<Caller, number>();

  /** @param most null: any number */
  constructor(most: number | null) {
    this.#most = most;
  }

  /**
   * @returns to be called once, when the request has ended
   * @throws AppError `rate_limited`
   */
  enter(caller: Caller): () => void {
    const running = this.#running.get(caller) ?? 0;
    if (this.#most !== null && running >= this.#most) {
      throw new AppError(
        'rate_limited',
        `Expected at most ${this.#most} requests at a time, got one more. Wait for an answer to end.`,
      );
    }
    this.#running.set(caller, running + 1);
    return () => {
      const left = (this.#running.get(caller) ?? 0) - 1;
      if (left > 0) this.#running.set(caller, left);
      else this.#running.delete(caller);
    };
  }
}
