import { describe, expect, it } from 'vitest';
import { phasesOf } from '../../../src/text/phases.ts';

describe('phases of an answer', () => {
  const ids: Readonly<Record<string, number>> = { '<think>': 90, '</think>': 91, '<tool_call>': 92, '</tool_call>': 93 };

  it('change at the marks, which belong to what they enclose', () => {
    const tokenizer = { tokenId: (token: string) => ids[token] ?? null };
    expect(phasesOf(tokenizer, [1, 90, 2, 91, 3, 92, 4, 93, 5])).toEqual([
      'content',
      'reasoning',
      'reasoning',
      'reasoning',
      'content',
      'tool',
      'tool',
      'tool',
      'content',
    ]);
  });

  it('are content throughout for a vocabulary without marks', () => {
    expect(phasesOf({ tokenId: () => null }, [90, 91])).toEqual(['content', 'content']);
  });
});
