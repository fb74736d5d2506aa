/** The one table from error codes to HTTP statuses, OpenAI's error bodies and WebSocket close codes. */
import { AppError, type ErrorCode } from '../core/app-error.ts';
import { HttpError } from './http-error.ts';

/** Close codes of RFC 6455 and its registry that this server sends. */
export const CLOSE_CODE = {
  normal: 1000,
  /** The server drains. */
  goingAway: 1001,
  policy: 1008,
  internal: 1011,
  tryAgainLater: 1013,
} as const;

export type CloseCode = (typeof CLOSE_CODE)[keyof typeof CLOSE_CODE];

interface ErrorRow {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly closeCode: CloseCode;
  /** Seconds after which the same request may succeed. */
  readonly retryAfter?: number;
  /** Clients that would ask again by themselves are told not to: the same request would take as long. */
  readonly isFinal?: true;
  /** The message speaks of our own insides, which a caller must not see: it stays in the log. */
  readonly isInternal?: true;
}

const SERVER_ERROR = {
  status: 500,
  type: 'server_error',
  code: 'internal_error',
  closeCode: CLOSE_CODE.internal,
  isInternal: true,
} as const satisfies ErrorRow;

const TABLE: Readonly<Record<ErrorCode, ErrorRow>> = {
  invalid_request: { status: 400, type: 'invalid_request_error', code: 'invalid_request', closeCode: CLOSE_CODE.policy },
  model_not_found: { status: 404, type: 'invalid_request_error', code: 'model_not_found', closeCode: CLOSE_CODE.policy },
  context_length_exceeded: {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    closeCode: CLOSE_CODE.policy,
  },
  unauthorized: { status: 401, type: 'invalid_request_error', code: 'invalid_api_key', closeCode: CLOSE_CODE.policy },
  overloaded: { status: 503, type: 'overloaded_error', code: 'overloaded', closeCode: CLOSE_CODE.tryAgainLater, retryAfter: 1 },
  rate_limited: {
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limited',
    closeCode: CLOSE_CODE.tryAgainLater,
    retryAfter: 1,
  },
  timeout: { status: 408, type: 'timeout_error', code: 'timeout', closeCode: CLOSE_CODE.tryAgainLater, isFinal: true },
  unavailable: {
    status: 503,
    type: 'unavailable_error',
    code: 'unavailable',
    closeCode: CLOSE_CODE.tryAgainLater,
    retryAfter: 2,
  },
  // Nobody is left to read this one; the status is the one that access logs use for a client that left.
  aborted: { status: 499, type: 'invalid_request_error', code: 'aborted', closeCode: CLOSE_CODE.normal },
  invalid_config: SERVER_ERROR,
  invalid_checkpoint: SERVER_ERROR,
  incompatible_drafter: SERVER_ERROR,
  onnx_runtime: SERVER_ERROR,
  disposed: SERVER_ERROR,
  internal: SERVER_ERROR,
};

/** OpenAI's error envelope. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
}

/** Everything that a transport needs in order to report an error. */
export interface ErrorReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
  readonly closeCode: CloseCode;
  /** True when the log must hold the error itself, because the caller does not see it. */
  readonly isInternal: boolean;
}

/** Anything thrown, as an AppError. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError('internal', error instanceof Error ? error.message : String(error), { cause: error });
}

/** How an error is told to the caller; `requestId` lets an internal one be found in the log. */
export function errorReply(error: unknown, requestId: string): ErrorReply {
  const appError = toAppError(error);
  const row: ErrorRow = TABLE[appError.code];
  const { param, code } = appError.details;
  return {
    status: appError instanceof HttpError ? appError.status : row.status,
    headers: {
      ...(row.retryAfter === undefined ? {} : { 'retry-after': String(row.retryAfter) }),
      // OpenAI's clients send a request three times that is answered with 408.
      ...(row.isFinal ? { 'x-should-retry': 'false' } : {}),
      ...(appError.code === 'unauthorized' ? { 'www-authenticate': 'Bearer' } : {}),
      ...(appError instanceof HttpError ? appError.headers : {}),
    },
    body: {
      error: {
        message: row.isInternal ? internalMessage(requestId) : appError.message,
        type: row.type,
        param: typeof param === 'string' ? param : null,
        code: appError.code === 'invalid_request' && typeof code === 'string' ? code : row.code,
      },
    },
    closeCode: row.closeCode,
    isInternal: row.isInternal === true,
  };
}

function internalMessage(requestId: string): string {
  return `The server failed on this request. Its log has the reason under request id ${requestId}.`;
}
