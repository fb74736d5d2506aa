/** Incremental decoding by joining the bytes of tokens: exact, and O(1) amortised per token. */
import type { TokenId } from '../core/token.ts';
import type { IncrementalDetokenizer } from './incremental-detokenizer.ts';
import type { Tokenizer } from './tokenizer.ts';
import { incompleteSuffixLength } from './utf8.ts';

const REPLACEMENT = '\uFFFD';

/** Gives the same pieces as the DecodeStream of Hugging Face's tokenizers, which holds text back while it ends in U+FFFD. */
export class ByteLevelDetokenizer implements IncrementalDetokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #skipped: ReadonlySet<TokenId>;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** Decoded and held back: in parts, for looking at the end of a growing string copies it each time. */
  #held: string[] = [];
  /** Bytes of a character that is not finished, at most three. */
  #bytes: Uint8Array = new Uint8Array(0);

  /** @param skipped tokens without text */
  constructor(tokenizer: Tokenizer, skipped: ReadonlySet<TokenId>) {
    this.#tokenizer = tokenizer;
    this.#skipped = skipped;
  }

  push(id: TokenId): string {
    if (this.#skipped.has(id)) return '';
    const added = this.#tokenizer.tokenBytes(id);
    const bytes = new Uint8Array(this.#bytes.length + added.length);
    bytes.set(this.#bytes);
    bytes.set(added, this.#bytes.length);
    const end = bytes.length - incompleteSuffixLength(bytes);
    const text = this.#decoder.decode(bytes.subarray(0, end));
    if (text !== '') this.#held.push(text);
    this.#bytes = bytes.subarray(end);
    if (this.#bytes.length > 0 || this.#held.at(-1)?.endsWith(REPLACEMENT)) return '';
    return this.#take();
  }

  flush(): string {
    if (this.#bytes.length > 0) this.#held.push(REPLACEMENT);
    this.#bytes = new Uint8Array(0);
    return this.#take();
  }

  #take(): string {
    const text = this.#held.join('');
    this.#held = [];
    return text;
  }
}
