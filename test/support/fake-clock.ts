import type { Clock } from '../../src/server/clock.ts';

/** Time that moves only when told to. */
export class FakeClock implements Clock {
  #elapsedMs = 0;
  readonly #startMs: number;

  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.#startMs = startMs;
  }

  epochMs(): number {
    return this.#startMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  advance(ms: number): void {
    this.#elapsedMs += ms;
  }
}
