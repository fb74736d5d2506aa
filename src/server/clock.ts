/** Time as the server reads it, so that tests can set it. */
export interface Clock {
  /** Milliseconds since the epoch: for dates. */
  epochMs(): number;
  /** Milliseconds since some moment, never going back: for durations. */
  monotonicMs(): number;
}

export const systemClock: Clock = { epochMs: () => Date.now(), monotonicMs: () => performance.now() };
