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

/** Lists of equal length, one entry for each token. */
export interface ToldTokens {
  readonly tokens: readonly TokenId[];
  /** Null where nothing precedes the token. */
  readonly logprobs: readonly (TokenLogprobs | null)[];
  /** Where each begins in the text. */
  readonly offsets: readonly number[];
}

/** The lists of consecutive pieces make those of the whole answer. */
export function completionLogprobs({ tokens, logprobs, offsets }: ToldTokens, speller: TokenSpeller): CompletionLogprobs {
  return {
    text_offset: offsets,
    token_logprobs: logprobs.map((told) => (told === null ? null : jsonLogprob(told.logprob))),
    tokens: tokens.map((token) => speller.spell(token)),
    top_logprobs: logprobs.map((told) => (told === null ? null : withRivals(told, speller))),
  };
}

/** Of tokens whose texts are equal the most probable one stays, but for the chosen token's own. */
function withRivals({ token, logprob, top }: TokenLogprobs, speller: TokenSpeller): Readonly<Record<string, number>> {
  const entries = [{ token, logprob }, ...top].map((told) => [speller.spell(told.token), jsonLogprob(told.logprob)] as const);
  return Object.fromEntries(entries.toReversed());
}
