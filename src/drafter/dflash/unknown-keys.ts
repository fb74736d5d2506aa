import type { AppError } from '../../core/app-error.ts';

/**
 * A key that is not known may change what the drafter computes: it would run without, and be quietly worse.
 * @param place names the object in messages
 */
export function refuseUnknownKeys(
  object: Readonly<Record<string, unknown>>,
  known: readonly string[],
  place: string,
  refuse: (message: string) => AppError,
): void {
  const unknown = Object.keys(object).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw refuse(
    `expected ${place} without unknown keys, got ${unknown.join(', ')}; what they change is not known here, so allow unclaimed parts only if it is nothing`,
  );
}
