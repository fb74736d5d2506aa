import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { enforceablePattern } from '../../../src/grammar/enforceable-pattern.ts';
import { GrammarService } from '../../../src/grammar/grammar-service.ts';
import type { GrammarTokenizer } from '../../../src/grammar/grammar-vocabulary.ts';
import { PATIENT } from '../../support/patient-limits.ts';

const refuse = (what: string) => new Error(what);
const END = 256;
/** A token for each byte, as byte-level vocabularies spell it, and one that ends. */
const BYTES: GrammarTokenizer = {
  vocabSize: 257,
  specialIds: new Set([END]),
  isByteLevel: true,
  token: (id) => SPELLED[id] ?? null,
};
const PLAIN = (byte: number) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
let moved = 256;
const SPELLED = [...Array.from({ length: 256 }, (_, byte) => String.fromCharCode(PLAIN(byte) ? byte : moved++)), '<|end|>'];
const CHARACTERS = [...'\0\t\n\r !"$-.059A^Z_az\\{é\u00ffЖжя一😀'];

/** All of them are read alike with the flag u; `\s` and `.` differ beyond ASCII, in characters that are not among those above. */
const SETS = [
  '.',
  '\\d',
  '\\D',
  '\\s',
  '\\S',
  '\\w',
  '\\W',
  '\\.',
  '\\t',
  '\\x41',
  '\\u0436',
  '\\u{1f600}',
  'é',
  '😀',
  '\\{',
  '[a-z]',
  '[^a-z]',
  '[\\s\\S]',
  '[^\\S]',
  '[^\\W_]',
  '[^\\D5]',
  '[\\W5]',
  '[\\w.\\-]',
  '[\\]^\\\\]',
  '[$.]',
  '[а-я]',
  '[A-ZЖ-я]',
  '[é-ü0]',
  '[\\u0436\\u{1f600}]',
  '[^\\x00-\\x7f]',
  '[^"\\\\\\x00-\\x1f]',
  '[\\b\\t]',
]; // prettier-ignore

describe('regular expressions', () => {
  let service: GrammarService;
  beforeAll(() => {
    service = new GrammarService({ tokenizer: BYTES, vocabSize: 257, eosTokenIds: [END], limits: PATIENT });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  async function matching(pattern: string, texts: readonly string[]): Promise<readonly string[]> {
    const compiled = await service.compile({ kind: 'regex', pattern });
    const matched: string[] = [];
    for (const text of texts) {
      using processor = service.open(compiled);
      const tokens = [...Buffer.from(text), END];
      if ((await processor.admit!(tokens)) === tokens.length) matched.push(text);
    }
    return matched;
  }

  it.each(SETS)('%s stands for the characters that it names', async (pattern) => {
    const expected = CHARACTERS.filter((character) => new RegExp(`^(?:${pattern})$`, 'u').test(character));
    expect(await matching(pattern, CHARACTERS)).toEqual(expected);
  });

  it('never leave half a character', async () => {
    using processor = service.open(await service.compile({ kind: 'regex', pattern: '.[а-я]' }));
    expect(await processor.admit!([0x61, 0xd0, END])).toBe(2);
    expect(await processor.admit!([0xd0, 0x61])).toBe(1);
  });

  it.each([
    ['^(?:a|bc)$', ['a', 'bc', 'abc']],
    ['^a$|^(b$|cb)', ['a', 'b', 'cb', 'ab', 'bc']],
    ['[éè]{2,3}x?', ['éè', 'ééèx', 'é']],
    ['(?<name>a|[^b])+?c', ['ac', 'жac', 'bc']],
  ])('%s is matched as a whole', async (pattern, texts) => {
    const expected = texts.filter((text) => new RegExp(`^(?:${pattern})$`, 'u').test(text));
    expect(expected).not.toEqual([]);
    expect(await matching(pattern, texts)).toEqual(expected);
  });

  it.each([
    ['a$b', 'a $ in front of other text'],
    ['(a$|b)c', 'a $ in front of other text'],
    ['a$(b)', 'a $ in front of other text'],
    ['a^b', 'a ^ behind other text'],
    ['x(^a|b)', 'a ^ behind other text'],
    ['(^a)*', 'a repeated group with ^ or $'],
    ['[^\\s\\S]', 'a set without characters'],
    ['[^é]', 'a set of all characters but some beyond ASCII'],
    ['[一-龥]', 'a set of too many characters beyond ASCII'],
    ['[z-a]', 'a range whose end is before its beginning'],
    ['[a-\\d]', 'a range that ends with a class of characters'],
    ['a\\Z', '\\Z'],
    ['\\x4', '\\x without its digits'],
    ['\\ud800', '\\ud800, which is no character,'],
    ['[éè]'.repeat(200), 'one of more than 1000 characters with its sets written out'],
    ['[a', 'a pattern that ends too early'],
    ['\\', 'a pattern that ends too early'],
  ])('%s is refused', (pattern, what) => {
    expect(() => enforceablePattern(pattern, { quoted: false, maxLength: 1000, refuse })).toThrow(new Error(what));
  });

  it('with sets beyond ASCII are refused in grammars', async () => {
    for (const set of ['[а-я]', '[^é]', '[\\u0436]', '[\\xe9]']) {
      await expect(service.compile({ kind: 'grammar', ebnf: `root ::= "a" | ${set}` })).rejects.toThrow(
        'sets of ASCII characters',
      );
    }
    await service.compile({ kind: 'grammar', ebnf: 'root ::= "[é]" | [^a-z\\x41] # [é]' });
  });

  it('within structural tags are enforced alike', async () => {
    const tag = { type: 'structural_tag', format: { type: 'regex', pattern: '[а-я]$b' } };
    await expect(service.compile({ kind: 'structural-tag', tag: JSON.stringify(tag) })).rejects.toThrow('a $ in front of');
  });
});

describe('patterns between quotes', () => {
  it('have no match that JSON would write with a backslash', () => {
    for (const pattern of ['.', '\\W', '\\S', '[^@]', '[\\W]']) {
      const quoted = new RegExp(`^(?:${enforceablePattern(pattern, { quoted: true, maxLength: 1000, refuse })})$`, 'u');
      expect(CHARACTERS.filter((character) => quoted.test(character) && JSON.stringify(character).includes('\\'))).toEqual([]);
      expect(quoted.test('!'), pattern).toBe(true);
      expect(quoted.test('一'), pattern).toBe(true);
    }
  });

  it.each(['"', '\\\\', '\\n', '["]', '[!-~]', '[A-z]', '[\\s]', '\\x22'])('%s names what JSON escapes', (pattern) => {
    expect(() => enforceablePattern(pattern, { quoted: true, maxLength: 1000, refuse })).toThrow(
      'characters that JSON escapes',
    );
  });
});
