import { type ErrorReply, errorReply, toAppError } from './error-response.ts';
import type { Logger } from './logger.ts';
import type { ServerMetrics } from './metrics.ts';

/**
 * Counts a failed request, logs what its caller will not see, and returns what the caller is told.
 * @param requestLogger of the request's own lines. Default: the server's, with the id of the request.
 */
export type ReportFailure = (error: unknown, requestId: string, requestLogger?: Logger) => ErrorReply;

export function createFailureReport(logger: Logger, metrics: Pick<ServerMetrics, 'onError' | 'onRejection'>): ReportFailure {
  return (error, requestId, requestLogger = logger.child({ requestId })) => {
    const reply = errorReply(error, requestId);
    // A caller that left is counted where the engine counts its answer, as an abort.
    if (toAppError(error).code !== 'aborted') metrics.onError(reply.body.error.code);
    const { limit } = toAppError(error).details;
    if (toAppError(error).code === 'overloaded' && typeof limit === 'string') metrics.onRejection(limit);
    if (reply.isInternal) requestLogger.error({ code: toAppError(error).code, error }, 'request failed');
    return reply;
  };
}
