/** The fake engine's tokenizer: a token is a UTF-8 byte, and a few special ones lie above. */
import type { TokenId } from '../../src/core/token.ts';

const SPECIAL_TOKENS = ['<|end|>', '<|im_start|>', '<|im_end|>'] as const;
/** Tokens of their own; the tags are shown like any text, unless they are made special ones. */
const ADDED_TOKENS = [...SPECIAL_TOKENS, '<think>', '</think>', '<tool_call>', '</tool_call>'] as const;
const FIRST_SPECIAL = 256;
const FIRST_TAG = FIRST_SPECIAL + SPECIAL_TOKENS.length;

export const EOS_TOKEN: TokenId = FIRST_SPECIAL;
export const VOCAB_SIZE = FIRST_SPECIAL + ADDED_TOKENS.length;

/** Ids of the text; special tokens written in it are recognised. */
export function encodeBytes(text: string): readonly TokenId[] {
  return text.split(/(<\|end\|>|<\|im_start\|>|<\|im_end\|>|<\/?think>|<\/?tool_call>)/).flatMap((piece) => {
    const added = ADDED_TOKENS.indexOf(piece as (typeof ADDED_TOKENS)[number]);
    return added === -1 ? [...Buffer.from(piece, 'utf8')] : [FIRST_SPECIAL + added];
  });
}

/** The token of its own that a text has, if it has one. */
export function addedToken(text: string): TokenId | null {
  const added = ADDED_TOKENS.indexOf(text as (typeof ADDED_TOKENS)[number]);
  return added === -1 ? null : FIRST_SPECIAL + added;
}

export function tokenBytes(token: TokenId): Uint8Array {
  return token < FIRST_SPECIAL ? Uint8Array.of(token) : Buffer.from(ADDED_TOKENS[token - FIRST_SPECIAL] ?? '');
}

export function decodeBytes(tokens: readonly TokenId[], isShown: (token: TokenId) => boolean): string {
  return Buffer.concat(tokens.filter(isShown).map(tokenBytes)).toString('utf8');
}

export function isSpecial(token: TokenId, tags = false): boolean {
  return token >= FIRST_SPECIAL && (tags || token < FIRST_TAG);
}

export interface FakeTextOptions {
  readonly stopStrings: readonly string[];
  readonly includeStopString: boolean;
  readonly isShown: (token: TokenId) => boolean;
}

/** Text of an answer as it grows: complete characters only, and nothing that may become a stop string. */
export class FakeTextStream {
  readonly #options: FakeTextOptions;
  readonly #decoder = new TextDecoder();
  #text = '';
  #sent = 0;
  /** The stop string that ended the text, else null. */
  matched: string | null = null;

  constructor(options: FakeTextOptions) {
    this.#options = options;
  }

  /** Adds one token; `matched` says whether it completed a stop string. */
  push(token: TokenId): void {
    if (this.#options.isShown(token)) this.#text += this.#decoder.decode(tokenBytes(token), { stream: true });
    for (const stop of this.#options.stopStrings) {
      const at = this.#text.indexOf(stop, this.#sent);
      if (at === -1) continue;
      this.matched = stop;
      this.#text = this.#text.slice(0, this.#options.includeStopString ? at + stop.length : at);
      return;
    }
  }

  /** Text that became certain since the last call; everything that is left when `isEnd`. */
  take(isEnd: boolean): string {
    if (isEnd && this.matched === null) this.#text += this.#decoder.decode();
    const end = isEnd ? this.#text.length : this.#text.length - this.#heldBack();
    const text = this.#text.slice(this.#sent, end);
    this.#sent = Math.max(this.#sent, end);
    return text;
  }

  /** Length of the longest end of the text that begins a stop string. */
  #heldBack(): number {
    const lengths = this.#options.stopStrings.flatMap((stop) =>
      Array.from({ length: stop.length - 1 }, (_, i) => i + 1).filter((length) => this.#text.endsWith(stop.slice(0, length))),
    );
    return Math.max(0, ...lengths);
  }
}
