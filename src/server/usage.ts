/** OpenAI's token counts. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  /** Where reasoning is told apart. */
  readonly completion_tokens_details?: { readonly reasoning_tokens: number };
}

export interface CountedTokens {
  readonly prompt: number;
  readonly completion: number;
  /** Of the prompt. */
  readonly cached: number;
  /** Of the completion; null where it is not told apart. */
  readonly reasoning: number | null;
}

export function usage({ prompt, completion, cached, reasoning }: CountedTokens): Usage {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
    ...(reasoning === null ? {} : { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}
