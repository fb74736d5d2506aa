/** What the server can be told, with defaults that are safe on a shared machine. */

import type { ReasoningParser } from './chat/reasoning.ts';

/** How much each answer says about its speculation. */
export type SpecMetricsLevel = 'none' | 'summary' | 'detailed';

/** Caps checked before anything is allocated for a request. */
export interface RequestLimits {
  /** Bytes of an HTTP body, and of a WebSocket frame. */
  readonly maxBodyBytes: number;
  readonly maxStopStrings: number;
  /** UTF-16 units of one stop string. */
  readonly maxStopLength: number;
  readonly maxStopTokenIds: number;
  readonly maxMessages: number;
  /** Entries of `logit_bias`. */
  readonly maxLogitBias: number;
  readonly maxBadWords: number;
  /** UTF-16 units of all of them together. */
  readonly maxBadWordsLength: number;
  readonly maxAllowedTokenIds: number;
  /** UTF-16 units of a schema, pattern, grammar or of all choices together. */
  readonly maxGrammarLength: number;
  /** Texts among which an answer has to be. */
  readonly maxChoiceTexts: number;
  /** Answers of one request: n times the number of prompts. */
  readonly maxChoices: number;
  /** Tokens that all answers of one request may have together. */
  readonly maxRequestTokens: number;
  /** Logprobs that all answers of one request may tell together, rivals included. */
  readonly maxRequestLogprobs: number;
}

export interface WebSocketLimits {
  readonly maxConnections: number;
  /** Connections of one API key, where there are several. */
  readonly maxConnectionsPerKey: number;
  /** Requests that run at the same moment on one connection. */
  readonly maxRequestsPerConnection: number;
  /** Bytes waiting to be sent above which the engine keeps what it emits for that connection. */
  readonly highWaterBytes: number;
  /** Bytes waiting to be sent above which the connection is cut. */
  readonly hardLimitBytes: number;
  /** A connection that misses a whole interval without answering its ping is cut. */
  readonly pingIntervalMs: number;
  /** A connection without a running request and without a frame for this long is closed. */
  readonly idleTimeoutMs: number;
  /** Frames in a row that are no request: after these the connection is closed as a policy violation. */
  readonly maxErrorFrames: number;
  /** Frames of a client in a second, of whatever kind: after more the connection is closed as a policy violation. */
  readonly maxFramesPerSecond: number;
}

export interface ServerConfig {
  /** Keys of which one must come as `Authorization: Bearer`; none: everyone may call. */
  readonly apiKeys: readonly string[];
  readonly perRequestSpecMetrics: SpecMetricsLevel;
  /** How the reasoning of chat answers is told apart. */
  readonly reasoningParser: ReasoningParser;
  /** Whether requests may ask for a trace of their rounds. */
  readonly allowTrace: boolean;
  /** Whether callers with a key may replace drafters; never without keys. */
  readonly allowDrafterSwap: boolean;
  /** Browser origins that may open a WebSocket, beside the server's own; their hosts are names that the server answers to. */
  readonly allowedOrigins: readonly string[];
  /** Browser origins whose pages may read what the routes answer; none: no page of another origin. */
  readonly corsOrigins: readonly string[];
  readonly limits: RequestLimits;
  readonly webSocket: WebSocketLimits;
  /** Requests of one API key, or of all callers without keys, at the same moment; null: any number. */
  readonly maxRequestsPerKey: number | null;
  /** Milliseconds from a request's arrival to the end of its answer; null: any. */
  readonly requestTimeoutMs: number | null;
  /** A connection that takes nothing of what waits to be sent for so long is cut. */
  readonly stalledResponseMs: number;
  /** How long `close()` lets running answers finish before it cuts them. */
  readonly closeGraceMs: number;
}

export const DEFAULT_SERVER_CONFIG: ServerConfig = {
  apiKeys: [],
  perRequestSpecMetrics: 'summary',
  reasoningParser: 'auto',
  allowTrace: false,
  allowDrafterSwap: false,
  allowedOrigins: [],
  corsOrigins: [],
  limits: {
    maxBodyBytes: 4 * 1024 * 1024,
    maxStopStrings: 16,
    maxStopLength: 1024,
    maxStopTokenIds: 128,
    maxMessages: 2048,
    maxLogitBias: 1024,
    maxBadWords: 256,
    maxBadWordsLength: 16_384,
    maxAllowedTokenIds: 16_384,
    maxGrammarLength: 65_536,
    maxChoiceTexts: 1024,
    maxChoices: 128,
    maxRequestTokens: 262_144,
    maxRequestLogprobs: 1_048_576,
  },
  webSocket: {
    maxConnections: 256,
    maxConnectionsPerKey: 64,
    maxRequestsPerConnection: 8,
    highWaterBytes: 256 * 1024,
    hardLimitBytes: 4 * 1024 * 1024,
    pingIntervalMs: 30_000,
    idleTimeoutMs: 300_000,
    maxErrorFrames: 16,
    maxFramesPerSecond: 100,
  },
  maxRequestsPerKey: null,
  requestTimeoutMs: null,
  stalledResponseMs: 60_000,
  closeGraceMs: 10_000,
};
