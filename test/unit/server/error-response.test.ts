import { describe, expect, test } from 'vitest';
import { AppError, type ErrorCode } from '../../../src/core/app-error.ts';
import { errorReply } from '../../../src/server/error-response.ts';
import { HttpError } from '../../../src/server/http-error.ts';

const ROWS: readonly (readonly [ErrorCode, number, string, string, number])[] = [
  ['invalid_request', 400, 'invalid_request_error', 'invalid_request', 1008],
  ['model_not_found', 404, 'invalid_request_error', 'model_not_found', 1008],
  ['context_length_exceeded', 400, 'invalid_request_error', 'context_length_exceeded', 1008],
  ['unauthorized', 401, 'invalid_request_error', 'invalid_api_key', 1008],
  ['overloaded', 503, 'overloaded_error', 'overloaded', 1013],
  ['rate_limited', 429, 'rate_limit_error', 'rate_limited', 1013],
  ['timeout', 408, 'timeout_error', 'timeout', 1013],
  ['unavailable', 503, 'unavailable_error', 'unavailable', 1013],
  ['aborted', 499, 'invalid_request_error', 'aborted', 1000],
  ['invalid_config', 500, 'server_error', 'internal_error', 1011],
  ['invalid_checkpoint', 500, 'server_error', 'internal_error', 1011],
  ['incompatible_drafter', 500, 'server_error', 'internal_error', 1011],
  ['onnx_runtime', 500, 'server_error', 'internal_error', 1011],
  ['disposed', 500, 'server_error', 'internal_error', 1011],
  ['internal', 500, 'server_error', 'internal_error', 1011],
];

describe('the error table', () => {
  test.each(ROWS)('maps %s to %i, %s, %s and close code %i', (code, status, type, bodyCode, closeCode) => {
    const reply = errorReply(new AppError(code, 'the words'), 'r1');
    expect(reply).toMatchObject({ status, closeCode, body: { error: { type, code: bodyCode, param: null } } });
  });

  test.each(ROWS.filter(([, status]) => status === 500))('keeps the message of %s for the log', (code) => {
    const reply = errorReply(new AppError(code, 'a secret path'), 'r1');
    expect(reply.isInternal).toBe(true);
    expect(reply.body.error.message).not.toContain('secret');
    expect(reply.body.error.message).toContain('r1');
  });

  test.each(['overloaded', 'unavailable', 'rate_limited'] as const)('says when to come back after %s', (code) => {
    expect(errorReply(new AppError(code, 'x'), 'r1').headers['retry-after']).toMatch(/^\d+$/);
  });

  test('tells clients not to ask again where that would take as long', () => {
    const final = ROWS.filter(([code]) => errorReply(new AppError(code, 'x'), 'r1').headers['x-should-retry'] === 'false');
    expect(final.map(([code]) => code)).toEqual(['timeout']);
  });

  test('names the field and a finer code where the error has them', () => {
    const error = new AppError('invalid_request', 'x', { details: { param: 'stop', code: 'invalid_value' } });
    expect(errorReply(error, 'r1').body.error).toEqual({
      message: 'x',
      type: 'invalid_request_error',
      param: 'stop',
      code: 'invalid_value',
    });
  });

  test('keeps status and headers of an HTTP refusal', () => {
    const reply = errorReply(new HttpError(405, 'x', { headers: { allow: 'GET' } }), 'r1');
    expect(reply).toMatchObject({ status: 405, headers: { allow: 'GET' } });
  });

  test.each([new TypeError('boom'), 'boom', undefined])('treats anything else that is thrown as internal: %s', (thrown) => {
    const reply = errorReply(thrown, 'r1');
    expect(reply.status).toBe(500);
    expect(reply.body.error.message).not.toContain('boom');
  });
});
