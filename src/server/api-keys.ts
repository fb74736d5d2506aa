import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '../core/app-error.ts';

/** Who asks, as far as keys tell: the place of the key in the list. Without keys all callers are one. */
export type Caller = number;

/** @throws AppError `unauthorized` unless the `Authorization` header carries one of the keys. */
export type ApiKeyCheck = (authorization: string | undefined) => Caller;

/** A check against several keys whose duration tells nothing about them. Without keys everyone passes. */
export function createApiKeyCheck(apiKeys: readonly string[]): ApiKeyCheck {
  if (apiKeys.length === 0) return () => 0;
  const expected = apiKeys.map(digest);
  return (authorization) => {
    const key = /^Bearer +(\S+)\s*$/i.exec(authorization ?? '')?.[1];
    if (key === undefined) {
      throw new AppError('unauthorized', "Expected an 'Authorization: Bearer <key>' header, got none. Send the API key.");
    }
    const given = digest(key);
    // No early exit: every key is compared, so the time does not say which one was near.
    const caller = expected.reduce((found, candidate, i) => (timingSafeEqual(candidate, given) ? i : found), -1);
    if (caller < 0) throw new AppError('unauthorized', 'Expected a valid API key, got another one. Check the key.');
    return caller;
  };
}

/** Equal lengths, which the comparison needs, whatever the length of the key. */
function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
