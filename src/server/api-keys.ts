import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '../core/app-error.ts';

/** @throws AppError `unauthorized` unless the `Authorization` header carries one of the keys. */
export type ApiKeyCheck = (authorization: string | undefined) => void;

/** A check against several keys whose duration tells nothing about them. Without keys everyone passes. */
export function createApiKeyCheck(apiKeys: readonly string[]): ApiKeyCheck {
  if (apiKeys.length === 0) return () => undefined;
  const expected = apiKeys.map(digest);
  return (authorization) => {
    const key = /^Bearer +(\S+)\s*$/i.exec(authorization ?? '')?.[1];
    if (key === undefined) {
      throw new AppError('unauthorized', "Expected an 'Authorization: Bearer <key>' header, got none. Send the API key.");
    }
    const given = digest(key);
    // No early exit: every key is compared, so the time does not say which one was near.
    const matches = expected.reduce((found, candidate) => timingSafeEqual(candidate, given) || found, false);
    if (!matches) throw new AppError('unauthorized', 'Expected a valid API key, got another one. Check the key.');
  };
}

/** Equal lengths, which the comparison needs, whatever the length of the key. */
function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
