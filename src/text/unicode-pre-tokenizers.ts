/**
 * Restates two pre-tokenizers by patterns that mean the same in @huggingface/tokenizers as in the Rust library.
 *
 * The package matches `Digits` by an ASCII-only `\d`, where Rust's `char::is_numeric` is every Unicode number (² ½ ① ٣), and the
 * built-in pattern of `ByteLevel` by JavaScript's `\s`, which has U+FEFF and lacks U+0085. Its `Split` has neither fault.
 */

/** GPT-2's pattern, as in the Rust library's ByteLevel. */
const BYTE_LEVEL_PATTERN = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

interface PreTokenizerConfig {
  readonly type?: unknown;
  readonly pretokenizers?: unknown;
  readonly individual_digits?: unknown;
  readonly add_prefix_space?: unknown;
  readonly use_regex?: unknown;
}

/** @param config the `pre_tokenizer` of a tokenizer.json */
export function withUnicodePatterns(config: unknown): unknown {
  if (typeof config !== 'object' || config === null) return config;
  const { type, pretokenizers, individual_digits, add_prefix_space, use_regex }: PreTokenizerConfig = config;
  if (type === 'Sequence' && Array.isArray(pretokenizers)) {
    return { ...config, pretokenizers: pretokenizers.map(withUnicodePatterns) };
  }
  if (type === 'Digits') return splitAround(individual_digits === true ? String.raw`\p{N}` : String.raw`\p{N}+`);
  // A prefix space is added before the pattern is matched, so the two cannot be taken apart there.
  if (type === 'ByteLevel' && use_regex !== false && add_prefix_space === false) {
    return { type: 'Sequence', pretokenizers: [splitAround(BYTE_LEVEL_PATTERN), { ...config, use_regex: false }] };
  }
  return config;
}

function splitAround(pattern: string) {
  return { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false };
}
