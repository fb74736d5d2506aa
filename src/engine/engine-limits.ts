/** What an engine may take of the machine and of its callers' patience. */
export interface EngineLimits {
  /** Milliseconds that a step should take at most while answers are being streamed: prompts get what that leaves. */
  readonly maxStepMs: number;
}

export const DEFAULT_ENGINE_LIMITS: EngineLimits = {
  maxStepMs: 100,
};
