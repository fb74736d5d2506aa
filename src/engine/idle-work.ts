/** Work with the target for moments in which no request wants it. */
import { AbortedError } from '../core/aborted-error.ts';
import type { ServedDrafter } from './served-drafter.ts';

/**
 * Called again from its beginning after a request came in between, so it keeps what it has.
 * @param drafters that serve at this time
 * @param signal aborts when a request comes; the task then throws {@link AbortedError}
 */
export type IdleTask = (drafters: readonly ServedDrafter[], signal: AbortSignal) => Promise<void>;

/** Who asks again as soon as an answer ends is not to find the target in use. */
const QUIET_MS = 100;

interface Waiting {
  readonly task: IdleTask;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class IdleWork {
  readonly #waiting: Waiting[] = [];
  #ended = false;

  /** Settles as the task does, or when there will be no idle moment any more. */
  add(task: IdleTask): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ task, resolve, reject }));
  }

  get due(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * Works on the first of those that wait, after a while in which nothing woke the engine; it stays the first when the signal
   * ends it.
   */
  async next(drafters: readonly ServedDrafter[], woken: Promise<void>, signal: AbortSignal): Promise<void> {
    const [first] = this.#waiting;
    if (first === undefined || !(await isQuiet(woken))) return;
    try {
      await first.task(drafters, signal);
      first.resolve();
    } catch (error) {
      if (error instanceof AbortedError) return;
      first.reject(error);
    }
    this.#waiting.shift();
  }

  end(): void {
    this.#ended = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }
}

async function isQuiet(woken: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const quiet = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), QUIET_MS);
  });
  try {
    return await Promise.race([quiet, woken.then(() => false)]);
  } finally {
    clearTimeout(timer);
  }
}
