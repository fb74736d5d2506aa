import { randomUUID } from 'node:crypto';

/** What an id may look like: nothing that could mean something to a log, a header or a URL. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

/** A fresh id. */
export function newRequestId(): string {
  return randomUUID().replaceAll('-', '');
}

/** The caller's X-Request-Id where it is harmless, else a fresh one: an unsafe id is replaced whole, never repaired. */
export function requestIdFromHeader(header: string | undefined): string {
  return header !== undefined && REQUEST_ID_PATTERN.test(header) ? header : newRequestId();
}
