/** The one base class of errors that blockdraft raises on purpose, and the closed list of their codes. */

/**
 * What went wrong, as a stable string. The server maps each code to an HTTP status and a WebSocket close
 * code in one table (`src/server/error-response.ts`); nothing else branches on messages.
 */
export type ErrorCode =
  /** A request that cannot be served as written. `details.param` names the field. */
  | 'invalid_request'
  /** The requested model is not the one served. */
  | 'model_not_found'
  /** Prompt and answer do not fit the context. `details` has `promptTokens` and `maxContext`. */
  | 'context_length_exceeded'
  /** No room in the queue; try again later. */
  | 'overloaded'
  /** This caller has too many requests under way; try again when one of them has ended. */
  | 'rate_limited'
  /** The request took longer than this server allows. */
  | 'timeout'
  /** The model is still loading, or the server drains before it stops. */
  | 'unavailable'
  /** A missing or wrong API key. */
  | 'unauthorized'
  /** A configuration (flag, environment variable) that cannot be used. */
  | 'invalid_config'
  /** A model folder that cannot be read or is not supported. */
  | 'invalid_checkpoint'
  /** A drafter that does not fit its target. */
  | 'incompatible_drafter'
  /** ONNX Runtime reported a failure, or its library cannot be used. */
  | 'onnx_runtime'
  /** An object was used after it was disposed. */
  | 'disposed'
  /** The caller gave up. Never logged as an error. */
  | 'aborted'
  /** A broken invariant of our own. */
  | 'internal';

export interface AppErrorOptions {
  readonly cause?: unknown;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Message style: what was expected, what came, what to do. */
export class AppError extends Error {
  override readonly name: string = 'AppError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.details = options.details ?? {};
  }
}
