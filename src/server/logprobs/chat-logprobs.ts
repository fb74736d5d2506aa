/** `logprobs` of a chat choice, in OpenAI's shape. */
import type { TokenLogprobs } from '../../core/token-logprobs.ts';
import { jsonLogprob } from './json-logprob.ts';
import type { TokenSpeller } from './token-speller.ts';

export interface ChatTokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export interface ChatLogprobs {
  readonly content: readonly (ChatTokenLogprob & { readonly top_logprobs: readonly ChatTokenLogprob[] })[];
  readonly refusal: null;
}

/** One entry for each token, special ones included; entries of consecutive chunks make those of the whole answer. */
export function chatLogprobs(logprobs: readonly TokenLogprobs[], speller: TokenSpeller): ChatLogprobs {
  const entry = ({ token, logprob }: Pick<TokenLogprobs, 'token' | 'logprob'>): ChatTokenLogprob => ({
    token: speller.spell(token),
    logprob: jsonLogprob(logprob),
    bytes: speller.bytes(token),
  });
  return { content: logprobs.map((told) => ({ ...entry(told), top_logprobs: told.top.map(entry) })), refusal: null };
}
