import type { TokenId } from './token.ts';

/** How many tokens two lists begin with alike, `most` at the most. */
export function commonLength(a: readonly TokenId[], b: readonly TokenId[], most: number): number {
  const end = Math.min(most, a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}
