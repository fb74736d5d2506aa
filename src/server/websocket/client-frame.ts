/** What a client may say on a WebSocket. */
import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import { parseJson } from '../read-json-body.ts';
import { REQUEST_ID_PATTERN } from '../request-id.ts';
import { fieldError, parseRequest } from '../schemas/parse-request.ts';

export type ClientFrame =
  /** The body of a request, as over HTTP; `requestId` is null when the client leaves the naming to the server. */
  | { readonly type: 'request'; readonly requestId: string | null; readonly body: Readonly<Record<string, unknown>> }
  | { readonly type: 'cancel'; readonly requestId: string };

const cancelSchema = z.strictObject({
  type: z.literal('cancel'),
  request_id: z.string().describe('the id of a running request'),
});

/** @throws AppError `invalid_request` for a frame that is neither; `details.requestId` is the one it names, if it does. */
export function parseClientFrame(text: string): ClientFrame {
  const frame = parseJson(text, 'a JSON object as the frame');
  if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) {
    throw new AppError('invalid_request', 'Expected a JSON object as the frame, got another value. Send a request body.', {
      details: { code: 'invalid_json' },
    });
  }
  const { type = null, ...body } = frame as Readonly<Record<string, unknown>>;
  if (type === 'cancel') return { type, requestId: parseRequest(cancelSchema, frame).request_id };
  if (type !== null) throw fieldError('type', 'absent for a request, or "cancel"', type);
  const requestId = body['request_id'] ?? null;
  if (requestId !== null && (typeof requestId !== 'string' || !REQUEST_ID_PATTERN.test(requestId))) {
    throw fieldError('request_id', '1 to 128 letters, digits, dots, underscores and dashes', requestId);
  }
  return { type: 'request', requestId, body };
}
