/** What an engine may take of the machine and of its callers' patience. */
export interface EngineLimits {
  /** Milliseconds that a step should take at most while answers are being streamed: prompts get what that leaves. */
  readonly maxStepMs: number;
  /** Memory for the beginnings of sequences that have ended, to be reused by others; 0: none are kept. */
  readonly prefixCacheBytes: number;
}

export const DEFAULT_ENGINE_LIMITS: EngineLimits = {
  maxStepMs: 100,
  prefixCacheBytes: 512 * 2 ** 20,
};
