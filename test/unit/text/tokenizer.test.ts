import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadTokenizer, Tokenizer } from '../../../src/text/tokenizer.ts';
import { byteLevelDefinition, sentencePieceDefinition } from './tokenizer-definitions.ts';

const byteLevel = new Tokenizer(byteLevelDefinition(), { eos_token: { content: '<|end|>' }, bos_token: null }, '');
const END = byteLevel.tokenId('<|end|>')!;

describe('Tokenizer, byte-level', () => {
  it('encodes and decodes with merges and special tokens', () => {
    const ids = byteLevel.encode('hello<|end|>h', { addSpecialTokens: false });
    expect(ids.map((id) => byteLevel.token(id))).toEqual(['hello', '<|end|>', 'h']);
    expect(byteLevel.decode(ids, { skipSpecialTokens: false })).toBe('hello<|end|>h');
    expect(byteLevel.decode(ids, { skipSpecialTokens: true })).toBe('helloh');
  });

  it('keeps added tokens that are not special when special ones are skipped', () => {
    expect(byteLevel.decode([byteLevel.tokenId('<|to 世|>')!, END], { skipSpecialTokens: true })).toBe('<|to 世|>');
  });

  it('names special ids', () => {
    expect(byteLevel.specialIds).toEqual(new Set([END]));
    expect(byteLevel.eosId).toBe(END);
    expect(byteLevel.bosId).toBeNull();
    expect(byteLevel.vocabSize).toBe(END + 2);
  });

  it('leaves out ids outside the vocabulary, which a padded head can choose', () => {
    expect(byteLevel.decode([104, 5000, 105], { skipSpecialTokens: false })).toBe('hi');
    expect(byteLevel.decode([5000], { skipSpecialTokens: false })).toBe('');
    expect(byteLevel.tokenBytes(5000)).toHaveLength(0);
    expect(byteLevel.token(5000)).toBeNull();
  });

  it('replaces bytes that are no character and joins characters across a skipped token', () => {
    expect(byteLevel.decode([0xe4, 0xb8], { skipSpecialTokens: false })).toBe('\uFFFD');
    expect(byteLevel.decode([0xe4, 0xb8, END, 0x96], { skipSpecialTokens: true })).toBe('世');
  });

  it('keeps a byte order mark and the space before punctuation', () => {
    const text = '\uFEFFhi , you';
    expect(byteLevel.decode(byteLevel.encode(text, { addSpecialTokens: false }), { skipSpecialTokens: false })).toBe(text);
  });

  it('gives the bytes of every token', () => {
    for (let byte = 0; byte < 256; byte++) expect([...byteLevel.tokenBytes(byte)]).toEqual([byte]);
    expect([...byteLevel.tokenBytes(END)]).toEqual([...Buffer.from('<|end|>')]);
  });

  it.each([
    ['superscripts and fractions', '²½', [2, 2]],
    ['circled and Arabic digits', '①٣', [3, 2]],
  ])('takes %s for digits', (_, text, lengths) => {
    const definition = byteLevelDefinition({
      type: 'Sequence',
      pretokenizers: [
        { type: 'Digits', individual_digits: true },
        { type: 'ByteLevel', add_prefix_space: false, use_regex: false },
      ],
    });
    // A merge over the border between the two numbers, which a split between them forbids.
    const bytes = new Tokenizer(definition, {}, '').encode(text, { addSpecialTokens: false });
    const spelled = bytes.map((id) => byteLevel.token(id)!);
    const border = lengths[0]!;
    const merged = [spelled[border - 1]!, spelled[border]!];
    const size = Object.keys(definition.model.vocab).length + 2;
    const model = {
      ...definition.model,
      vocab: { ...definition.model.vocab, [merged.join('')]: size },
      merges: [...definition.model.merges, merged],
    };
    expect(new Tokenizer({ ...definition, model }, {}, '').encode(text, { addSpecialTokens: false })).toEqual(bytes);
  });

  it('does not take U+FEFF for a space', () => {
    const definition = byteLevelDefinition();
    const [last, first] = [...Buffer.from('!')].concat(...Buffer.from('\uFEFF')).map((byte) => byteLevel.token(byte)!);
    const size = Object.keys(definition.model.vocab).length + 2;
    const model = {
      ...definition.model,
      vocab: { ...definition.model.vocab, [`${last}${first}`]: size },
      merges: [...definition.model.merges, [last!, first!]],
    };
    const ids = new Tokenizer({ ...definition, model }, {}, '').encode('!\uFEFF', { addSpecialTokens: false });
    expect(ids).toEqual([size, 0xbb, 0xbf]);
  });
});

describe('Tokenizer, sentencepiece-like', () => {
  const tokenizer = new Tokenizer(sentencePieceDefinition(), { bos_token: '<s>', eos_token: '</s>' }, '');

  it('adds special tokens only when asked', () => {
    expect(tokenizer.isByteLevel).toBe(false);
    expect(tokenizer.encode('a bc', { addSpecialTokens: true })[0]).toBe(tokenizer.bosId);
    expect(tokenizer.encode('a bc', { addSpecialTokens: false }).map((id) => tokenizer.token(id))).toEqual(['▁a', '▁b', 'c']);
  });

  it('decodes through the decoder of tokenizer.json', () => {
    const ids = tokenizer.encode('a é世', { addSpecialTokens: true });
    expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe('a é世');
    expect(tokenizer.decode([9999], { skipSpecialTokens: true })).toBe('');
  });

  it('gives bytes and texts of tokens as they stand within a text', () => {
    const bytes = (token: string) => [...tokenizer.tokenBytes(tokenizer.tokenId(token)!)];
    expect(bytes('▁b')).toEqual([...Buffer.from(' b')]);
    expect(bytes('<0xE4>')).toEqual([0xe4]);
    expect(bytes('</s>')).toEqual([...Buffer.from('</s>')]);
    const text = 'a bé世 c';
    const ids = tokenizer.encode(text, { addSpecialTokens: false });
    // The decoder drops the space ahead of a text.
    expect(Buffer.concat(ids.map((id) => tokenizer.tokenBytes(id))).toString()).toBe(` ${text}`);
    expect(ids.map((id) => tokenizer.tokenText(id))).toEqual([' a', ' b', '\uFFFD', '\uFFFD', '世', ' ', 'c']);
    expect(tokenizer.tokenText(9999)).toBe('');
  });

  it('keeps the space before punctuation', () => {
    expect(tokenizer.decode(tokenizer.encode('a , b', { addSpecialTokens: false }), { skipSpecialTokens: true })).toBe('a , b');
  });
});

describe('loadTokenizer', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokenizer-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('reads both files and hashes the definition', async () => {
    const definition = JSON.stringify(byteLevelDefinition());
    await writeFile(join(folder, 'tokenizer.json'), definition);
    await writeFile(join(folder, 'tokenizer_config.json'), '{"bos_token": "<|end|>"}');
    const tokenizer = await loadTokenizer(folder);
    expect(tokenizer.bosId).toBe(END);
    expect(tokenizer.sha256).toBe(createHash('sha256').update(definition).digest('hex'));
  });

  it('does without tokenizer_config.json', async () => {
    await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(byteLevelDefinition()));
    expect((await loadTokenizer(folder)).eosId).toBeNull();
  });

  it.each([
    ['no tokenizer.json', null, 'no such file'],
    ['text that is no JSON', '{', 'does not parse'],
    ['another JSON value', '[]', 'expected a JSON object'],
    ['an unknown model', '{"model": {"type": "Nonsense"}, "decoder": null}', 'expected a usable tokenizer.json'],
  ])('refuses %s', async (_, content, message) => {
    if (content !== null) await writeFile(join(folder, 'tokenizer.json'), content);
    await expect(loadTokenizer(folder)).rejects.toMatchObject({
      code: 'invalid_checkpoint',
      message: expect.stringContaining(message),
    });
  });
});
