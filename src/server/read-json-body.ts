import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import { HttpError } from './http-error.ts';
import { jsonDepth } from './json-depth.ts';

/** More than any request or schema needs, and far from what fills a stack. */
const MAX_JSON_DEPTH = 128;

/**
 * The body as parsed JSON, read no further than the limit, and no longer than somebody waits for the answer.
 * @throws HttpError 415 for another content type, 413 for too many bytes; AppError `invalid_request` for what is no JSON;
 *   AbortedError
 */
export async function readJsonBody(request: Request, maxBytes: number, signal?: AbortSignal): Promise<unknown> {
  const contentType = request.headers.get('content-type');
  if (!isJson(contentType)) {
    // Refusing the other types also keeps web pages from sending requests that need no CORS permission.
    throw new HttpError(
      415,
      `Expected content-type application/json, got ${contentType ?? 'none'}. Send JSON with that header.`,
      { details: { code: 'unsupported_media_type' } },
    );
  }
  return parseJson(await readText(request, maxBytes, signal), 'a JSON object as the body');
}

/** @throws AppError `invalid_request` when the text is no JSON, or too deep to be walked through safely. */
export function parseJson(text: string, expected: string): unknown {
  if (jsonDepth(text) > MAX_JSON_DEPTH) {
    throw new AppError(
      'invalid_request',
      `Expected ${expected} with at most ${MAX_JSON_DEPTH} arrays and objects inside one another, got more. Flatten it.`,
      { details: { code: 'invalid_json' } },
    );
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const got = text.trim() === '' ? 'nothing' : (error as Error).message;
    throw new AppError('invalid_request', `Expected ${expected}, got ${got}. Send valid JSON.`, {
      cause: error,
      details: { code: 'invalid_json' },
    });
  }
}

function isJson(contentType: string | null): boolean {
  return contentType !== null && /^application\/json\s*(?:;|$)/i.test(contentType.trim());
}

async function readText(request: Request, maxBytes: number, signal: AbortSignal | undefined): Promise<string> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  // A body stops before its end only when the connection does, or when it is given up.
  const aborted = (cause: unknown) => new AbortedError('Reading the body', cause);
  const giveUp = (): void => void reader?.cancel().catch(() => undefined);
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    while (reader !== undefined) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw aborted(error);
      });
      if (signal?.aborted) throw aborted(signal.reason);
      if (done) break;
      size += value.byteLength;
      if (size > maxBytes) {
        // The rest is the transport's to drop; waiting for it would be reading it.
        giveUp();
        throw tooLarge(maxBytes);
      }
      chunks.push(value);
    }
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw new AppError('invalid_request', 'Expected a body in UTF-8, got bytes that are none. Encode it as UTF-8.', {
      cause: error,
      details: { code: 'invalid_json' },
    });
  }
}

function tooLarge(maxBytes: number): HttpError {
  return new HttpError(413, `Expected a body of at most ${maxBytes} bytes, got more. Send a shorter prompt.`, {
    details: { code: 'request_too_large' },
  });
}
