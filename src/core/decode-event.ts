/** What a running request reports: some `tokens` events, then exactly one `finish`. Failures are thrown. */
import type { PhasedRound } from './round-trace.ts';
import type { SpeculationRecord } from './speculation-record.ts';
import type { TokenId } from './token.ts';
import type { TokenLogprobs } from './token-logprobs.ts';

export type DecodeEvent = TokensEvent | FinishEvent;

/** The tokens that one round added. */
export interface TokensEvent {
  readonly type: 'tokens';
  /** Tokens emitted by the round, a stop token included. */
  readonly tokens: readonly TokenId[];
  /**
   * Text that became certain: complete characters only, and nothing that may turn out to be the
   * beginning of a stop string. Empty when everything is held back.
   */
  readonly text: string;
  /** One for each token, where the request asked for them. */
  readonly logprobs?: readonly TokenLogprobs[];
  /** One for each token of the prompt but the first, which nothing precedes; with the first event only, where asked for. */
  readonly promptLogprobs?: readonly TokenLogprobs[];
}

/**
 * `stop`: a stop token or stop string; `length`: max_tokens or the context is used up; `aborted`: the caller gave up;
 * `error`: it failed, which is for observers only: the caller is told by what is thrown.
 */
export type FinishReason = 'stop' | 'length' | 'aborted' | 'error';

export interface FinishEvent {
  readonly type: 'finish';
  readonly reason: FinishReason;
  /** The stop string or the id of the stop token other than end-of-sequence that ended the answer, else null (vLLM's `stop_reason`). */
  readonly stopReason: string | TokenId | null;
  readonly promptTokens: number;
  /** Tokens of the prompt that were not computed, as an earlier sequence began with them. */
  readonly cachedTokens: number;
  /** Tokens emitted, a stop token included. */
  readonly completionTokens: number;
  readonly speculation: SpeculationRecord;
  readonly timing: RequestTiming;
  /** Its rounds token by token, where the request asked for them. */
  readonly trace?: readonly PhasedRound[];
}

/** Milliseconds since the request was accepted by the engine. */
export interface RequestTiming {
  /** Waiting for a free sequence. */
  readonly queueMs: number;
  /** Until the first token was emitted; null when none was. */
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
}
