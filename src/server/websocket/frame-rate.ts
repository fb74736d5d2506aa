import type { Clock } from '../clock.ts';

/** Whether frames come no faster than a rate; as many as a second's may come at once. */
export class FrameRate {
  readonly #perSecond: number;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #left: number;
  #at: number;

  constructor(perSecond: number, clock: Pick<Clock, 'monotonicMs'>) {
    this.#perSecond = perSecond;
    this.#clock = clock;
    this.#left = perSecond;
    this.#at = clock.monotonicMs();
  }

  /** Counts one; false: it comes too soon. */
  take(): boolean {
    const now = this.#clock.monotonicMs();
    this.#left = Math.min(this.#left + ((now - this.#at) / 1000) * this.#perSecond, this.#perSecond);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
