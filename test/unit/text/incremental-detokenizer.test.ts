import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createDetokenizer } from '../../../src/text/incremental-detokenizer.ts';
import { Tokenizer } from '../../../src/text/tokenizer.ts';
import { byteLevelDefinition, sentencePieceDefinition } from './tokenizer-definitions.ts';

const byteLevel = new Tokenizer(byteLevelDefinition(), {}, '');
const sentencePiece = new Tokenizer(sentencePieceDefinition(), {}, '');

/** All ids of the vocabulary, some outside it, and whole characters, so that texts are not noise alone. */
function idsOf(tokenizer: Tokenizer): fc.Arbitrary<number[]> {
  const any = fc.nat({ max: tokenizer.vocabSize + 2 }).map((id) => [id]);
  const text = fc
    .string({ unit: 'grapheme', maxLength: 4 })
    .map((value) => tokenizer.encode(value, { addSpecialTokens: false }));
  return fc.array(fc.oneof(any, text), { maxLength: 12 }).map((parts) => parts.flat());
}

function stream(tokenizer: Tokenizer, ids: readonly number[], skipSpecialTokens: boolean) {
  const detokenizer = createDetokenizer(tokenizer, { skipSpecialTokens });
  const deltas = ids.map((id) => detokenizer.push(id));
  return { deltas, text: deltas.join('') + detokenizer.flush() };
}

/** DecodeStream of Hugging Face's tokenizers without its window: everything is decoded again for each id. */
function decodeAgain(tokenizer: Tokenizer, ids: readonly number[], skipSpecialTokens: boolean): string[] {
  let delivered = '';
  return ids.map((_, index) => {
    const text = tokenizer.decode(ids.slice(0, index + 1), { skipSpecialTokens });
    if (text.endsWith('\uFFFD')) return '';
    const delta = text.slice(delivered.length);
    delivered = text;
    return delta;
  });
}

describe('createDetokenizer, byte-level', () => {
  it('gives the text of all ids, and each piece as soon as DecodeStream would', () => {
    fc.assert(
      fc.property(idsOf(byteLevel), fc.boolean(), (ids, skipSpecialTokens) => {
        const { deltas, text } = stream(byteLevel, ids, skipSpecialTokens);
        expect(text).toBe(byteLevel.decode(ids, { skipSpecialTokens }));
        expect(deltas).toEqual(decodeAgain(byteLevel, ids, skipSpecialTokens));
      }),
      { numRuns: 2000 },
    );
  });

  it('never delivers a part of a character', () => {
    const ids = byteLevel.encode('a 😀世', { addSpecialTokens: false });
    const { deltas } = stream(byteLevel, ids, false);
    expect(deltas.filter((delta) => delta !== '')).toEqual(['a', ' 😀', '世']);
  });

  it('keeps byte order marks', () => {
    const text = '\uFEFFa\uFEFF';
    expect(stream(byteLevel, byteLevel.encode(text, { addSpecialTokens: false }), false).text).toBe(text);
  });

  it('makes U+FFFD of what is incomplete at the end', () => {
    const detokenizer = createDetokenizer(byteLevel, { skipSpecialTokens: false });
    expect([0x61, 0xf0, 0x9f].map((id) => detokenizer.push(id))).toEqual(['a', '', '']);
    expect(detokenizer.flush()).toBe('\uFFFD');
    expect(detokenizer.flush()).toBe('');
  });

  it('joins a character across a skipped special token', () => {
    const end = byteLevel.tokenId('<|end|>')!;
    expect(stream(byteLevel, [0xe4, 0xb8, end, 0x96], true).deltas).toEqual(['', '', '', '世']);
    expect(stream(byteLevel, [0xe4, 0xb8, end, 0x96], false).deltas).toEqual(['', '', '\uFFFD<|end|>', '']);
  });

  it('takes constant work per token in a long run of bytes that are no character', () => {
    const detokenizer = createDetokenizer(byteLevel, { skipSpecialTokens: false });
    for (let count = 0; count < 200_000; count++) detokenizer.push(0x80);
    expect(detokenizer.flush()).toHaveLength(200_000);
  }, 5000);
});

describe('createDetokenizer, other decoders', () => {
  it('gives the text of all ids', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' ', 'é', '世', '😀', '\uFFFD') }),
        fc.boolean(),
        (value, skipSpecialTokens) => {
          const ids = sentencePiece.encode(value, { addSpecialTokens: true });
          expect(stream(sentencePiece, ids, skipSpecialTokens).text).toBe(sentencePiece.decode(ids, { skipSpecialTokens }));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('holds the bytes of a character back until it is whole', () => {
    const ids = ['a', '<0xC3>', '<0xA9>', 'b', '<0xE4>'].map((token) => sentencePiece.tokenId(token)!);
    const { deltas, text } = stream(sentencePiece, ids, false);
    expect(deltas).toEqual(['a', '', 'é', 'b', '']);
    expect(text).toBe('aéb\uFFFD');
  });

  it('keeps the space at the beginning of an answer when it knows the prompt', () => {
    const [a, b] = ['▁a', '▁b'].map((token) => sentencePiece.tokenId(token)!);
    const after = createDetokenizer(sentencePiece, { skipSpecialTokens: true, precedingTokens: [a!, a!, a!, a!, a!, a!, a!] });
    expect([after.push(b!), after.push(a!), after.flush()]).toEqual([' b', ' a', '']);
    const alone = createDetokenizer(sentencePiece, { skipSpecialTokens: true });
    expect([alone.push(b!), alone.push(a!)]).toEqual(['b', ' a']);
  });

  it('shows those special tokens that it is asked for', () => {
    const [begin, end, a] = ['<s>', '</s>', '▁a'].map((token) => sentencePiece.tokenId(token)!);
    const detokenizer = createDetokenizer(sentencePiece, { skipSpecialTokens: true, shownTokens: [end!] });
    expect([begin!, a!, end!, a!].map((id) => detokenizer.push(id))).toEqual(['', 'a', '</s>', ' a']);
  });

  it('keeps the space behind a token without text', () => {
    const ids = [sentencePiece.tokenId('▁a')!, 9999, sentencePiece.tokenId('▁b')!];
    expect(stream(sentencePiece, ids, false).deltas).toEqual(['a', '', ' b']);
  });

  it('decodes few tokens at a time', () => {
    let longest = 0;
    const counting = {
      isByteLevel: false,
      specialIds: new Set([5000]),
      decode: (ids: readonly number[]) => {
        longest = Math.max(longest, ids.length);
        return ids.map(() => 'x').join('');
      },
    } as unknown as Tokenizer;
    const detokenizer = createDetokenizer(counting, { skipSpecialTokens: true });
    for (let id = 0; id < 1000; id++) expect(detokenizer.push(id) + detokenizer.push(5000)).toBe('x');
    expect(longest).toBe(2);
  });
});
