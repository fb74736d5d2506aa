import { SharedArray } from 'k6/data';
import type { Prompt } from './types.ts';

/**
 * Prompts as JSON lines, one object each: `id`, `category`, `messages`. By default those that the project brings with it; see
 * the README beside them for their licence. Real texts, as random tokens would be drafted better than what people write.
 * @param read opens the file; in the script itself, which paths are relative to
 */
export function loadPrompts(read: () => string): readonly Prompt[] {
  return new SharedArray('prompts', () =>
    read()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line) as Prompt),
  );
}

export const PROMPTS = __ENV['PROMPTS'] ?? '../src/validate/prompts/by-category.jsonl';

/** Takes turns through all categories, so that every load level sees the same mix. */
export function promptAt(prompts: readonly Prompt[], index: number): Prompt {
  const STRIDE = 9;
  return prompts[(index * STRIDE) % prompts.length] as Prompt;
}
