import { describe, expect, test } from 'vitest';
import { TokenizerText } from '../../../src/engine/model-text.ts';
import { chatLogprobs } from '../../../src/server/logprobs/chat-logprobs.ts';
import { TextOffsets } from '../../../src/server/logprobs/text-offsets.ts';
import { tokenSpeller } from '../../../src/server/logprobs/token-speller.ts';
import { ChatTemplate } from '../../../src/text/chat-template.ts';
import { createDetokenizer } from '../../../src/text/incremental-detokenizer.ts';
import { Tokenizer } from '../../../src/text/tokenizer.ts';
import { byteLevelDefinition, sentencePieceDefinition } from '../text/tokenizer-definitions.ts';

const byteLevel = new Tokenizer(byteLevelDefinition(), {}, '');
const sentencePiece = new Tokenizer(sentencePieceDefinition(), {}, '');
const textOf = (tokenizer: Tokenizer) =>
  new TokenizerText(tokenizer, new ChatTemplate({ templates: new Map(), specialTokens: {} }), null);
const offsetsOf = (tokenizer: Tokenizer, skipSpecialTokens = true) => new TextOffsets(textOf(tokenizer), skipSpecialTokens);
const encode = (tokenizer: Tokenizer, text: string, addSpecialTokens = false) => tokenizer.encode(text, { addSpecialTokens });

describe('tokens of an answer', () => {
  test('begin where the one before them ends, from piece to piece', () => {
    const offsets = offsetsOf(byteLevel);
    const ids = encode(byteLevel, 'hello 😀é');
    // Two bytes of 😀 are one token with the space, and the other two tokens of their own.
    expect([...offsets.emitted(ids.slice(0, 3)), ...offsets.emitted(ids.slice(3))]).toEqual([0, 5, 6, 6, 7, 7]);
  });

  test.each([
    [true, [0, 1, 1]],
    [false, [0, 1, 8]],
  ])('that are special have a place where they are shown; skipped: %j', (skipSpecialTokens, expected) => {
    expect(offsetsOf(byteLevel, skipSpecialTokens).emitted(encode(byteLevel, 'h<|end|>h'))).toEqual(expected);
  });

  test('of a sentencepiece vocabulary have their spaces and bytes', () => {
    const prompt = encode(sentencePiece, 'a', true);
    const answer = encode(sentencePiece, 'b a é世 b');
    const detokenizer = createDetokenizer(sentencePiece, { skipSpecialTokens: true, precedingTokens: prompt });
    const text = answer.map((id) => detokenizer.push(id)).join('') + detokenizer.flush();
    expect(text).toBe(' b a é世 b');

    const told = answer.map((token) => ({ token, logprob: -1, rank: 1, top: [] }));
    const { content } = chatLogprobs(told, tokenSpeller(textOf(sentencePiece), false));
    expect(Buffer.concat(content.map(({ bytes }) => Buffer.from(bytes))).toString()).toBe(text);
    const starts = offsetsOf(sentencePiece).emitted(answer);
    const whole = content.filter(({ token }) => token !== '\uFFFD');
    expect(whole.map(({ token }) => token)).toEqual([' b', ' a', ' ', '世', ' b']);
    for (const [i, { token }] of content.entries()) {
      if (token !== '\uFFFD') expect(text.slice(starts[i], starts[i]! + token.length)).toBe(token);
    }
  });
});

describe('tokens of an echoed prompt', () => {
  test.each([
    ['special tokens that the caller wrote', byteLevel, 'h<|end|>h', [0, 1, 8], 9],
    ['characters of several tokens', byteLevel, 'h 😀é', [0, 1, 2, 2, 3, 3], 4],
    ['the space that sentencepiece begins with', sentencePiece, 'a a b', [0, 1, 3], 5],
    ['special tokens in a sentencepiece text', sentencePiece, '</s>a b', [0, 4, 5], 7],
  ])('are found in its text: %s', (_, tokenizer, text, expected, end) => {
    const offsets = offsetsOf(tokenizer);
    expect(offsets.echoed(encode(tokenizer, text), text)).toEqual(expected);
    expect(offsets.emitted([104])).toEqual([end]);
  });

  test.each([true, false])('have no place where the tokenizer put them around it; skipped: %j', (skipSpecialTokens) => {
    const offsets = offsetsOf(sentencePiece, skipSpecialTokens);
    expect(offsets.echoed(encode(sentencePiece, 'a b', true), 'a b')).toEqual([0, 0, 1]);
    expect(offsets.emitted(encode(sentencePiece, 'a'))).toEqual([3]);
  });

  test('sent as ids are shown as the answer is', () => {
    const ids = encode(byteLevel, 'h<|end|>h');
    expect(offsetsOf(byteLevel, true).echoed(ids, 'hh')).toEqual([0, 1, 1]);
    expect(offsetsOf(byteLevel, false).echoed(ids, 'h<|end|>h')).toEqual([0, 1, 8]);
  });

  test('are found again behind text that the tokenizer normalised', () => {
    const definition = { ...byteLevelDefinition(), normalizer: { type: 'NFC' } };
    const normalising = new Tokenizer(definition, {}, '');
    const text = 'he\u0301llo e\u0301';
    const ids = encode(normalising, text);
    expect(ids.map((id) => normalising.token(id))).toEqual(['h', 'Ã', '©', 'll', 'o', 'Ġ', 'Ã', '©']);
    const offsets = offsetsOf(normalising);
    expect(offsets.echoed(ids, text)).toEqual([0, 1, 1, 3, 5, 6, 7, 7]);
    // The answer begins behind the text, whatever was found in it.
    expect(offsets.emitted([104])).toEqual([9]);
  });

  test('do not take part of a special token in the text for one that was put around it', () => {
    const offsets = offsetsOf(sentencePiece);
    const text = 'a <s>';
    // The added one stands first, and 5 bytes behind its place the written one.
    expect(offsets.echoed([1, ...encode(sentencePiece, text)], text).slice(0, 2)).toEqual([0, 0]);
    expect(offsets.emitted([104])).toEqual([5]);
  });
});
