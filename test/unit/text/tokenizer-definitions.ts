/** Small tokenizer.json objects for tests. */

/** One character for each byte, in GPT-2's order of characters: printable bytes as themselves, the others from U+0100 on. */
function byteAlphabet(): string[] {
  const printable = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte < 173) || byte > 173;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}

function special(id: number, content: string) {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
}

/** Byte-level BPE: id 0..255 are the bytes, then merges, then a special token `<|end|>` and an added one, `<|to 世|>`, that is not. */
export function byteLevelDefinition(
  preTokenizer: object | null = { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
) {
  const bytes = byteAlphabet();
  const spell = (text: string) => [...Buffer.from(text)].map((byte) => bytes[byte]!);
  // Tokens that end inside a character: " " and the first bytes of 😀, and the first two of 世.
  const merges = [
    ['h', 'e'],
    ['l', 'l'],
    ['he', 'll'],
    ['hell', 'o'],
    [bytes[32]!, 'w'],
    spell(' 😀').slice(0, 2),
    [spell(' 😀').slice(0, 2).join(''), spell('😀')[1]!],
    spell('世').slice(0, 2),
  ];
  const tokens = [...bytes, ...merges.map((pair) => pair.join(''))];
  return {
    added_tokens: [special(tokens.length, '<|end|>'), { ...special(tokens.length + 1, '<|to 世|>'), special: false }],
    normalizer: null,
    pre_tokenizer: preTokenizer,
    post_processor: null,
    decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges },
  };
}

/** Sentencepiece-like BPE with byte fallback: a space is ▁, and the first one of a text is dropped by the decoder. */
export function sentencePieceDefinition() {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const tokens = ['<unk>', '<s>', '</s>', ...bytes, '▁', 'a', 'b', 'c', '▁a', '▁b', 'bc', '世'];
  return {
    added_tokens: ['<unk>', '<s>', '</s>'].map((content, id) => special(id, content)),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [],
      special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
    },
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        { type: 'Strip', content: ' ', start: 1, stop: 0 },
      ],
    },
    model: {
      type: 'BPE',
      unk_token: '<unk>',
      byte_fallback: true,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: [
        ['▁', 'a'],
        ['▁', 'b'],
        ['b', 'c'],
      ],
    },
  };
}
