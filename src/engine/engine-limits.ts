/** What an engine may take of the machine and of its callers' patience. */
export interface EngineLimits {
  /** Milliseconds that a step should take at most while answers are being streamed: prompts get what that leaves. */
  readonly maxStepMs: number;
  /** Milliseconds that a draft may take; a drafter that takes longer is left out for a while. */
  readonly drafterTimeoutMs: number;
  /** Tokens of the prompts that may wait for a sequence. */
  readonly maxWaitingTokens: number;
  /** Memory for the caches of running requests; null: what all sequences can need, if there is so much. */
  readonly kvCacheBytes: number | null;
  /** Memory for the beginnings of sequences that have ended, to be reused by others; 0: none are kept. */
  readonly prefixCacheBytes: number;
}

export const DEFAULT_ENGINE_LIMITS: EngineLimits = {
  maxStepMs: 100,
  drafterTimeoutMs: 5000,
  maxWaitingTokens: 262_144,
  kvCacheBytes: null,
  prefixCacheBytes: 512 * 2 ** 20,
};
