/** Prompts with their answers, for drafters that are to know them. */
import type { TokenId } from '../../src/core/token.ts';

const texts: (readonly TokenId[])[] = [];

export function tellText(tokens: readonly TokenId[]): void {
  texts.push(tokens);
}

/** What follows in the text told last of those that begin so; token 0 when there is none. */
export function nextInTold(prefix: readonly TokenId[]): TokenId {
  const known = texts.findLast((text) => text.length > prefix.length && prefix.every((token, i) => text[i] === token));
  return known?.[prefix.length] ?? 0;
}
