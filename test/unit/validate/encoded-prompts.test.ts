import { describe, expect, it } from 'vitest';
import { fittingPrompts } from '../../../src/validate/recording/encoded-prompts.ts';
import { promptSeed } from '../../../src/validate/recording/prompt-seed.ts';

const prompt = (id: string, tokens: number) => ({
  id,
  category: 'c',
  messages: [],
  promptTokens: Array.from({ length: tokens }, () => 1),
});
const ids = (prompts: readonly { readonly id: string }[]) => prompts.map(({ id }) => id);

describe('prompts that leave room for an answer', () => {
  it('are told apart from those that fill the context', () => {
    const { prompts, tooLong } = fittingPrompts([prompt('a', 7), prompt('b', 8), prompt('c', 1), prompt('d', 90)], 8);
    expect(ids(prompts)).toEqual(['a', 'c']);
    expect(tooLong).toEqual(['b', 'd']);
  });

  it('must be two at least, and have tokens', () => {
    expect(() => fittingPrompts([prompt('a', 7), prompt('b', 8)], 8)).toThrow(/context of 8 tokens, got 1 of 2/);
    expect(() => fittingPrompts([prompt('a', 7), prompt('b', 0)], 8)).toThrow(/none for b/);
  });
});

describe('the seed of a prompt', () => {
  it('follows from its id and the seed of the measurement', () => {
    const seeds = [promptSeed(0, 'a'), promptSeed(0, 'b'), promptSeed(1, 'a'), promptSeed(1, 'b')];
    expect(new Set(seeds).size).toBe(4);
    expect(promptSeed(0, 'a')).toBe(seeds[0]);
  });
});
