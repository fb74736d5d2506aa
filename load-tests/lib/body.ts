import { settings } from './settings.ts';
import type { Prompt, Sampling } from './types.ts';

/** The body of a streamed chat request. Greedy unless told otherwise, so that runs can be compared. */
export function chatBody({ messages }: Prompt, sampling: Sampling = {}): string {
  return JSON.stringify({
    ...(settings.model === '' ? {} : { model: settings.model }),
    ...(settings.drafter === '' ? {} : { drafter: settings.drafter }),
    messages,
    max_tokens: settings.maxTokens,
    temperature: 0,
    stream: true,
    // Usage in every chunk tells how many tokens a delivery has.
    stream_options: { include_usage: true, continuous_usage_stats: true },
    ...sampling,
  });
}

export const CHAT_PATH = '/v1/chat/completions';
