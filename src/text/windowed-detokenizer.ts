/** Incremental decoding for tokenizers whose tokens do not stand for bytes on their own. */
import type { TokenId } from '../core/token.ts';
import type { IncrementalDetokenizer } from './incremental-detokenizer.ts';
import type { Tokenizer } from './tokenizer.ts';

const REPLACEMENT = '\uFFFD';
/** As in vLLM: enough tokens for a decoder to see that it is not at the beginning of the text. */
const PRECEDING_TOKENS = 5;

/**
 * vLLM's `detokenize_incrementally`: decodes a window of the latest tokens with and without the new ones; the new text is the
 * difference. The window moves on when the difference is settled, so the work per token is that of the few tokens in it.
 *
 * Exact for decoders that treat a token alike wherever it is except at the beginning of the text, sentencepiece's among them.
 */
export class WindowedDetokenizer implements IncrementalDetokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #skipped: ReadonlySet<TokenId>;
  #window: TokenId[];
  /** How many tokens of the window have their text delivered. */
  #read: number;

  /**
   * @param skipped tokens without text
   * @param precedingTokens what the text follows
   */
  constructor(tokenizer: Tokenizer, skipped: ReadonlySet<TokenId>, precedingTokens: readonly TokenId[]) {
    this.#tokenizer = tokenizer;
    this.#skipped = skipped;
    this.#window = precedingTokens.slice(-PRECEDING_TOKENS).filter((id) => !skipped.has(id));
    this.#read = this.#window.length;
  }

  push(id: TokenId): string {
    if (this.#skipped.has(id)) return '';
    this.#window.push(id);
    const text = this.#decode(this.#window);
    if (text.endsWith(REPLACEMENT)) return '';
    const added = this.#newText(text);
    // Tokens without text stay in the window with a neighbour: alone they would be a beginning.
    if (added === '') return '';
    this.#window = this.#window.slice(this.#read);
    this.#read = this.#window.length;
    return added;
  }

  flush(): string {
    const added = this.#newText(this.#decode(this.#window));
    this.#read = this.#window.length;
    return added;
  }

  #newText(text: string): string {
    return text.slice(this.#decode(this.#window.slice(0, this.#read)).length);
  }

  #decode(ids: readonly TokenId[]): string {
    return this.#tokenizer.decode(ids, { skipSpecialTokens: false });
  }
}
