import { describe, expect, it } from 'vitest';
import type { TokenId } from '../../../src/core/token.ts';
import { accept } from '../../../src/decode/accept.ts';

interface Case {
  readonly title: string;
  readonly draft: readonly TokenId[];
  /** The target's choices, one behind the other. */
  readonly target: readonly TokenId[];
  /** How many tokens the answer may still have; it also ends with the token 99. */
  readonly room?: number;
  readonly emitted: readonly TokenId[];
  readonly evaluated: number;
  readonly accepted: number;
}

const END = 99;

/** Runs the rule as decoding does, and sees that no choice is asked for that is of no use. */
function run({ draft, target, room = Number.POSITIVE_INFINITY }: Pick<Case, 'draft' | 'target' | 'room'>) {
  const emitted: TokenId[] = [];
  const asked: number[] = [];
  const acceptance = accept(
    draft,
    (index) => {
      asked.push(index);
      return target[index]!;
    },
    (token) => {
      emitted.push(token);
      return token === END || emitted.length === room;
    },
  );
  expect(asked).toEqual(emitted.map((_, i) => i));
  return { ...acceptance, tokens: emitted };
}

describe('the accept rule', () => {
  const cases: Case[] = [
    {
      title: 'takes the target’s choice when the draft is empty',
      draft: [],
      target: [7],
      emitted: [7],
      evaluated: 0,
      accepted: 0,
    },
    {
      title: 'corrects a first token that is wrong',
      draft: [1, 2, 3],
      target: [7, 2, 3],
      emitted: [7],
      evaluated: 1,
      accepted: 0,
    },
    { title: 'corrects one in the middle', draft: [1, 2, 3], target: [1, 7, 3], emitted: [1, 7], evaluated: 2, accepted: 1 },
    { title: 'corrects the last', draft: [1, 2, 3], target: [1, 2, 7, 8], emitted: [1, 2, 7], evaluated: 3, accepted: 2 },
    {
      title: 'adds a bonus token when all are right',
      draft: [1, 2, 3],
      target: [1, 2, 3, 8],
      emitted: [1, 2, 3, 8],
      evaluated: 3,
      accepted: 3,
    },
    { title: 'does not resume behind a mismatch', draft: [1, 2], target: [7, 2, 2], emitted: [7], evaluated: 1, accepted: 0 },
    { title: 'tells apart a draft token 0 and none', draft: [0], target: [0, 0], emitted: [0, 0], evaluated: 1, accepted: 1 },
  ];
  it.each(cases)('$title', ({ emitted, evaluated, accepted, ...inputs }) => {
    expect(run(inputs)).toEqual({ tokens: emitted, evaluated, accepted, emitted: emitted.length });
  });

  it.each([0, 1, 2, 3])('ends with an accepted stop token in slot %i, and discards what is behind it', (slot) => {
    const draft = [1, 2, 3, 4].map((token, i) => (i === slot ? END : token));
    const tokens = draft.slice(0, slot + 1);
    expect(run({ draft, target: [...draft, 8] })).toEqual({
      tokens,
      evaluated: slot + 1,
      accepted: slot + 1,
      emitted: slot + 1,
    });
  });

  it.each([0, 1, 2, 3, 4])('ends with a stop token that is the target’s own behind %i accepted ones', (slot) => {
    const draft = [1, 2, 3, 4];
    const target = [...draft.slice(0, slot), END];
    const evaluated = Math.min(slot + 1, draft.length);
    expect(run({ draft, target })).toEqual({ tokens: target, evaluated, accepted: slot, emitted: slot + 1 });
  });

  it.each([1, 2, 3, 4, 5])('ends at the length limit after %i tokens', (room) => {
    const draft = [1, 2, 3, 4];
    const target = [...draft, 8];
    const accepted = Math.min(room, draft.length);
    expect(run({ draft, target, room })).toEqual({
      tokens: target.slice(0, room),
      evaluated: accepted,
      accepted,
      emitted: room,
    });
  });
});
