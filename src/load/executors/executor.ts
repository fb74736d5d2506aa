/** What runs the iterations of a scenario, and what it is given for that. */

/** A virtual user on loan to a scenario. */
export interface ScenarioVu {
  /** It was interrupted, or its thread has ended: it iterates no more. */
  readonly isClosed: boolean;
  /** Resolves when the iteration has ended, however it did. */
  iterate(): Promise<void>;
  /** Ends a running iteration now. */
  interrupt(): Promise<void>;
  giveBack(): void;
}

export interface ScenarioHost {
  /** Aborted when no iteration may start any more. */
  readonly stopping: AbortSignal;
  borrow(): Promise<ScenarioVu>;
  /** One that is free at this moment; where there is none, one more is being made ready if the scenario may have it. */
  tryBorrow(): ScenarioVu | null;
  /** Iterations that were due, and that no user was free for or that the time was too short for. */
  drop(count?: number): void;
}

/** Resolves when no iteration will start any more and all have ended. */
export type Execute = (host: ScenarioHost) => Promise<void>;
