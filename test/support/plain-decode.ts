import type { SamplingParams } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import { nextToken } from './scripted-logits.ts';
import type { NextLogits } from './scripted-target.ts';

export interface PlainRequest {
  readonly prompt: readonly TokenId[];
  readonly sampling: SamplingParams;
  readonly maxTokens: number;
  readonly stopTokens: readonly TokenId[];
}

/** What decoding one token at a time answers: the reference of all speculation, written without any of its code. */
export function plainDecode(nextLogits: NextLogits, { prompt, sampling, maxTokens, stopTokens }: PlainRequest): TokenId[] {
  const next = nextToken(nextLogits, sampling);
  const answer: TokenId[] = [];
  while (answer.length < maxTokens) {
    const token = next([...prompt, ...answer]);
    answer.push(token);
    if (stopTokens.includes(token)) break;
  }
  return answer;
}
