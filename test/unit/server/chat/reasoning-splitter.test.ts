import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ReasoningSplitter,
  type ReasoningStart,
  type ReasoningTagTokens,
} from '../../../../src/server/chat/reasoning-splitter.ts';

const TAGS: ReasoningTagTokens = { open: 1000, close: 1001 };

interface Piece {
  readonly token: number;
  readonly text: string;
}

/** A token per character, and one per tag; `[close]` stands for the spelling of the tag in other tokens. */
function tokenized(text: string): Piece[] {
  return text.split(/(<think>|<\/think>|\[close\])/).flatMap((part): Piece[] => {
    if (part === '<think>') return [{ token: TAGS.open, text: part }];
    if (part === '</think>') return [{ token: TAGS.close, text: part }];
    return [...(part === '[close]' ? '</think>' : part)].map((character) => ({
      token: character.charCodeAt(0),
      text: character,
    }));
  });
}

function split(start: ReasoningStart, tags: ReasoningTagTokens | null, rounds: readonly (readonly Piece[])[]) {
  const splitter = new ReasoningSplitter(start, tags);
  const parts = rounds.map((round) =>
    splitter.push(
      round.map(({ token }) => token),
      round.map(({ text }) => text).join(''),
    ),
  );
  parts.push(splitter.finish());
  return {
    reasoning: parts.map(({ reasoning }) => reasoning).join(''),
    content: parts.map(({ content }) => content).join(''),
    tokens: splitter.reasoningTokens,
  };
}

const byToken = (text: string) => tokenized(text).map((piece) => [piece]);
const atOnce = (text: string) => [tokenized(text)];

describe.each([
  ['tags that are tokens', TAGS],
  ['tags that are text', null],
] as const)('ReasoningSplitter with %s', (_, tags) => {
  test.each<[string, ReasoningStart, string, { reasoning: string; content: string }]>([
    ['an answer that reasons first', 'undecided', '<think>\nab\n</think>\n\ncd', { reasoning: '\nab\n', content: '\n\ncd' }],
    ['blanks ahead of the opening tag', 'undecided', '\n <think>ab</think>cd', { reasoning: 'ab', content: 'cd' }],
    ['an answer that does not reason', 'undecided', 'cd', { reasoning: '', content: 'cd' }],
    ['a tag behind other text', 'undecided', 'c<think>d</think>', { reasoning: '', content: 'c<think>d</think>' }],
    ['a text that only begins like the tag', 'undecided', ' <thin', { reasoning: '', content: ' <thin' }],
    ['reasoning that the prompt opened', 'open', 'ab</think>cd', { reasoning: 'ab', content: 'cd' }],
    ['reasoning without an end', 'open', 'ab</thin', { reasoning: 'ab</thin', content: '' }],
    ['reasoning that the prompt closed', 'closed', '<think>c', { reasoning: '', content: '<think>c' }],
    ['a second closing tag', 'open', 'a</think>b</think>c', { reasoning: 'a', content: 'b</think>c' }],
    ['an answer that says nothing', 'undecided', '', { reasoning: '', content: '' }],
  ])('%s', (_name, start, text, expected) => {
    expect(split(start, tags, byToken(text))).toMatchObject(expected);
    expect(split(start, tags, atOnce(text))).toMatchObject(expected);
  });

  test('says the same however the answer is cut into rounds', () => {
    const texts = fc
      .array(fc.constantFrom('<think>', '</think>', '<thi', 'nk>', '</', 'ab', '\n', ' ', '<'), { maxLength: 10 })
      .map((list) => list.join(''));
    const starts = fc.constantFrom<ReasoningStart>('open', 'closed', 'undecided');
    fc.assert(
      fc.property(texts, starts, fc.array(fc.nat(60), { maxLength: 8 }), (text, start, cuts) => {
        const pieces = tokenized(text);
        const places = [...new Set([0, ...cuts.filter((at) => at < pieces.length), pieces.length])].sort((a, b) => a - b);
        const { tokens: _, ...cut } = split(
          start,
          tags,
          places.slice(1).map((end, i) => pieces.slice(places[i], end)),
        );
        const { tokens: __, ...whole } = split(start, tags, [pieces]);
        expect(cut).toEqual(whole);
        expect(cut.reasoning.length + cut.content.length).toBeGreaterThanOrEqual(text.trimStart().length - 15);
      }),
      { numRuns: 1000 },
    );
  });
});

test('only the token ends reasoning where there is one', () => {
  const rounds = byToken('a[close]b</think>c');
  expect(split('open', TAGS, rounds)).toEqual({ reasoning: 'a</think>b', content: 'c', tokens: 10 });
  expect(split('open', null, rounds)).toMatchObject({ reasoning: 'a', content: 'b</think>c' });
});

test('finds a closing tag whose text comes later than its token', () => {
  const splitter = new ReasoningSplitter('open', TAGS);
  expect(splitter.push([97, TAGS.close], 'a')).toEqual({ reasoning: 'a', content: '' });
  expect(splitter.push([98], '</thi')).toEqual({ reasoning: '', content: '' });
  expect(splitter.push([99], 'nk>bc')).toEqual({ reasoning: '', content: 'bc' });
  expect(splitter.reasoningTokens).toBe(1);
});

test.each<[string, ReasoningStart, string, number]>([
  ['between the tags', 'undecided', '<think>abc</think>de', 3],
  ['up to the closing tag', 'open', 'abc</think>de', 3],
  ['none without reasoning', 'undecided', 'abc', 0],
  ['none where the prompt closed it', 'closed', 'abc', 0],
  ['all of an answer that reasons to its end', 'open', 'abc', 3],
])('counts tokens: %s', (_, start, text, tokens) => {
  expect(split(start, TAGS, byToken(text)).tokens).toBe(tokens);
  expect(split(start, TAGS, atOnce(text)).tokens).toBe(tokens);
});
