import type { TokenId } from '../../core/token.ts';
import type { ModelText } from '../../engine/engine.ts';

const SPACE = 0x20;
/** Bytes of an echoed text that no token may account for, as where the tokenizer normalises it. */
const MAX_GAP = 32;

/** Where in the text of one choice its tokens begin, in characters (code points). Told piece by piece; offsets go on. */
export class TextOffsets {
  readonly #text: Pick<ModelText, 'tokenBytes' | 'isSpecial'>;
  readonly #skipSpecialTokens: boolean;
  #characters = 0;

  constructor(text: Pick<ModelText, 'tokenBytes' | 'isSpecial'>, skipSpecialTokens: boolean) {
    this.#text = text;
    this.#skipSpecialTokens = skipSpecialTokens;
  }

  /**
   * Tokens of a prompt, which the text begins with. They are looked up in it: the special tokens that the caller wrote are
   * there, those that the tokenizer put around it are not, nor is the space that sentencepiece begins with. A token that is not
   * found begins where the one before it ends.
   * @param text of the whole prompt
   */
  echoed(tokens: readonly TokenId[], text: string): readonly number[] {
    const whole = Buffer.from(text);
    let end = 0;
    const offsets = tokens.map((token) => {
      const found = find(this.#text.tokenBytes(token), whole, end, this.#text.isSpecial(token) ? 0 : MAX_GAP);
      if (found === null) return this.#characters;
      const offset = this.#pass(whole.subarray(end, found.start), whole.subarray(found.start, found.end));
      end = found.end;
      return offset;
    });
    this.#characters += countCharacters(whole.subarray(end));
    return offsets;
  }

  /** Tokens of the answer, whose texts follow one another. */
  emitted(tokens: readonly TokenId[]): readonly number[] {
    return tokens.map((token) => {
      const isShown = !(this.#skipSpecialTokens && this.#text.isSpecial(token));
      return isShown ? this.#pass(NOTHING, this.#text.tokenBytes(token)) : this.#characters;
    });
  }

  /** @returns where the token begins */
  #pass(gap: Uint8Array, token: Uint8Array): number {
    this.#characters += countCharacters(gap);
    const startsInside = token.length > 0 && isContinuation(token[0]!) && this.#characters > 0;
    const offset = startsInside ? this.#characters - 1 : this.#characters;
    this.#characters += countCharacters(token);
    return offset;
  }
}

const NOTHING = new Uint8Array(0);

/** The place of a token's text where the one before it ends, or shortly behind; with the space at its beginning or without. */
function find(token: Uint8Array, text: Buffer, from: number, maxGap: number): { start: number; end: number } | null {
  const spellings = token[0] === SPACE ? [token, token.subarray(1)] : [token];
  for (const gap of [0, maxGap]) {
    for (const spelling of spellings) {
      const at = text.subarray(from, from + gap + spelling.length).indexOf(spelling);
      if (at !== -1) return { start: from + at, end: from + at + spelling.length };
    }
  }
  return null;
}

function countCharacters(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => count + (isContinuation(byte) ? 0 : 1), 0);
}

/** Of UTF-8: a byte that begins no character. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
