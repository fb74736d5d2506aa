/** `prompt_logprobs` in vLLM's shape. */
import type { TokenLogprobs } from '../../core/token-logprobs.ts';
import { jsonLogprob } from './json-logprob.ts';
import type { TokenSpeller } from './token-speller.ts';

/** By token id: the prompt's own token and the most probable ones. */
export type PromptTokenLogprobs = Readonly<
  Record<string, { readonly logprob: number; readonly rank: number; readonly decoded_token: string }>
>;

/** @returns one entry for each token of the prompt; null for the first, which nothing precedes */
export function promptLogprobsField(
  logprobs: readonly TokenLogprobs[],
  speller: TokenSpeller,
): readonly (PromptTokenLogprobs | null)[] {
  return [null, ...logprobs.map((told) => byToken(told, speller))];
}

function byToken({ token, logprob, rank, top }: TokenLogprobs, speller: TokenSpeller): PromptTokenLogprobs {
  const ranked = [{ token, logprob, rank }, ...top.map((rival, i) => ({ ...rival, rank: i + 1 }))];
  // The prompt's own token may be among the most probable; both say the same of it but for ties, where its rank is the true one.
  return Object.fromEntries(
    ranked
      .toReversed()
      .map((told) => [
        told.token,
        { logprob: jsonLogprob(told.logprob), rank: told.rank, decoded_token: speller.spell(told.token) },
      ]),
  );
}
