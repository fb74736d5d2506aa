import type { TokenId } from '../../src/core/token.ts';
import type { GrammarTokenizer } from '../../src/grammar/grammar-vocabulary.ts';

export const END = 0;
export const SPECIAL = 1;

/** Every printable character, a few bytes of longer ones, and pieces of JSON, spelled as byte-level BPE does. */
const PIECES = [
  '<|end|>',
  '<|special|>',
  ...Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)),
  'Ġ',
  'Ċ',
  'Ã',
  '¼',
  '{"',
  '":',
  '",',
  '"}',
  'Ġ"',
  '"]',
  'name',
  'true',
  'ab',
  '12',
  '}}',
  'ĠĠ',
];

/** Rows of logits are longer than the vocabulary, as models pad them. */
export const VOCAB_SIZE = PIECES.length + 5;

export const TINY_TOKENIZER: GrammarTokenizer = {
  vocabSize: PIECES.length,
  specialIds: new Set([END, SPECIAL]),
  isByteLevel: true,
  token: (id) => PIECES[id] ?? null,
};

const BYTES: Readonly<Record<string, number>> = { Ġ: 0x20, Ċ: 0x0a, Ã: 0xc3, '¼': 0xbc };

export function tinyText(tokens: readonly TokenId[]): string {
  const spelled = tokens.filter((id) => id !== END && id !== SPECIAL).map((id) => PIECES[id]!);
  return Buffer.from([...spelled.join('')].map((character) => BYTES[character] ?? character.charCodeAt(0))).toString('utf8');
}

/** Character by character. */
export function tinyTokens(text: string): TokenId[] {
  return [...text].map((character) => {
    const spelled = character === ' ' ? 'Ġ' : character === '\n' ? 'Ċ' : character;
    return PIECES.indexOf(spelled);
  });
}
