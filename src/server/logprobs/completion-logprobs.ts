/** `logprobs` of a completion's choice, in the shape that OpenAI and vLLM share. */
import type { TokenId } from '../../core/token.ts';
import type { TokenLogprobs } from '../../core/token-logprobs.ts';
import { jsonLogprob } from './json-logprob.ts';
import type { TokenSpeller } from './token-speller.ts';

/** Lists of equal length, one entry for each token. */
export interface CompletionLogprobs {
  readonly text_offset: readonly number[];
  readonly token_logprobs: readonly (number | null)[];
  readonly tokens: readonly string[];
  /** The token itself and the most probable ones; null for the first token of an echoed prompt, which nothing precedes. */
  readonly top_logprobs: readonly (Readonly<Record<string, number>> | null)[];
}

/** Writes the logprobs of one choice piece by piece; offsets go on from piece to piece. */
export class CompletionLogprobWriter {
  readonly #speller: TokenSpeller;
  /** Whether the token is in the text. */
  readonly #isShown: (token: TokenId) => boolean;
  #characters = 0;

  constructor(speller: TokenSpeller, isShown: (token: TokenId) => boolean) {
    this.#speller = speller;
    this.#isShown = isShown;
  }

  /** @param logprobs one for each token; null where nothing precedes it */
  write(tokens: readonly TokenId[], logprobs: readonly (TokenLogprobs | null)[]): CompletionLogprobs {
    return {
      text_offset: tokens.map((token) => this.#offset(token)),
      token_logprobs: logprobs.map((told) => (told === null ? null : jsonLogprob(told.logprob))),
      tokens: tokens.map((token) => this.#speller.spell(token)),
      top_logprobs: logprobs.map((told) => (told === null ? null : this.#top(told))),
    };
  }

  /** The character (code point) of the text in which the token begins. */
  #offset(token: TokenId): number {
    const bytes = this.#isShown(token) ? this.#speller.bytes(token) : [];
    const startsInside = bytes.length > 0 && isContinuation(bytes[0]!) && this.#characters > 0;
    const offset = startsInside ? this.#characters - 1 : this.#characters;
    this.#characters += bytes.filter((byte) => !isContinuation(byte)).length;
    return offset;
  }

  /** Of tokens whose texts are equal the most probable one stays, but for the chosen token's own. */
  #top({ token, logprob, top }: TokenLogprobs): Readonly<Record<string, number>> {
    const entries = [{ token, logprob }, ...top].map(
      (told) => [this.#speller.spell(told.token), jsonLogprob(told.logprob)] as const,
    );
    return Object.fromEntries(entries.toReversed());
  }
}

/** Of UTF-8: a byte that begins no character. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
