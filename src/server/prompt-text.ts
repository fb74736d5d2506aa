import { AppError } from '../core/app-error.ts';
import type { EngineInfo } from '../engine/engine.ts';

/** On average over a prompt: words have about four, and long runs of blanks or dashes more. */
const MOST_CHARACTERS_PER_TOKEN = 16;
/** Prompts of the longest kind in one request. */
const MOST_FULL_TEXTS = 4;

/**
 * Text far beyond the context is refused by its length: to count its tokens would keep everybody waiting.
 * @throws AppError `context_length_exceeded`
 */
export function checkTextLength(texts: readonly string[], { maxContext }: EngineInfo, param: string): void {
  const mostEach = maxContext * MOST_CHARACTERS_PER_TOKEN;
  const longest = texts.reduce((most, text) => Math.max(most, text.length), 0);
  const all = texts.reduce((sum, text) => sum + text.length, 0);
  if (longest <= mostEach && all <= mostEach * MOST_FULL_TEXTS) return;
  throw new AppError(
    'context_length_exceeded',
    `Expected a prompt of at most ${mostEach} characters, and ${mostEach * MOST_FULL_TEXTS} in all prompts of a request, ` +
      `for a context of ${maxContext} tokens, got ${longest} and ${all}. Shorten it.`,
    { details: { param, maxContext } },
  );
}
