import { AppError } from '../core/app-error.ts';
import type { LengthPolicy } from '../decode/draft-length/length-policy.ts';
import type { Drafter } from '../drafter/drafter.ts';

/** A drafter and how it is used. */
export interface ServedDrafter {
  readonly name: string;
  readonly drafter: Drafter;
  /** Where its weights lie; absent for one that was not loaded from a folder. */
  readonly folder?: string;
  /** About what its weights take of the memory; absent for one that has none. */
  readonly weightBytes?: number;
  /** The longest draft that a request can get. */
  readonly draftTokens: number;
  readonly lengths: LengthPolicy;
}

/**
 * @param name null: the default one
 * @returns null for plain decoding
 * @throws AppError `invalid_request` when there is no drafter of that name
 */
export function findDrafter(drafters: readonly ServedDrafter[], name: string | null): ServedDrafter | null {
  if (name === 'none') return null;
  if (name === null) return drafters[0] ?? null;
  const named = drafters.find((drafter) => drafter.name === name);
  if (named !== undefined) return named;
  const names = [...drafters.map((drafter) => drafter.name), 'none'].join(', ');
  throw new AppError('invalid_request', `Expected drafter to be one of ${names}, got ${name}. Choose one of them.`, {
    details: { param: 'drafter', code: 'invalid_value' },
  });
}
