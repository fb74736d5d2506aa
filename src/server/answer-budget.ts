/** How many tokens the answers of a request may have. */
import { AppError } from '../core/app-error.ts';
import type { EngineInfo } from '../engine/engine.ts';
import type { GenerationPlan } from './generation-plan.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';
import type { RequestLimits } from './server-config.ts';

/** @throws AppError `invalid_request` for more tokens than all answers of a request may have, asked for in so many words */
export function checkAnswerTokens(
  { maxTokens, n }: Pick<GenerationParams, 'maxTokens' | 'n'>,
  promptCount: number,
  { maxContext }: EngineInfo,
  { maxRequestTokens }: RequestLimits,
): void {
  if (maxTokens === null) return;
  const choices = n * promptCount;
  const each = Math.min(maxTokens, maxContext);
  if (choices * each <= maxRequestTokens) return;
  throw new AppError(
    'invalid_request',
    `Expected answers of at most ${maxRequestTokens} tokens together, got ${choices} of ${each}. Ask for less, or split the request.`,
    { details: { param: 'max_tokens', code: 'invalid_value' } },
  );
}

/**
 * The most tokens of each answer; null: what the context leaves. Who names no number gets as many as the limits on all answers
 * and their logprobs leave, rather than a refusal of what was never asked for.
 * @throws AppError `invalid_request` for more logprobs than one answer may hold
 */
export function answerTokens(
  { format, params, prompts }: Pick<GenerationPlan, 'format' | 'params' | 'prompts'>,
  { maxContext }: EngineInfo,
  { maxRequestTokens, maxRequestLogprobs }: RequestLimits,
): number | null {
  const { maxTokens, n } = params;
  const choices = n * prompts.length;
  const each = params.details.logprobs === null ? 0 : params.details.logprobs + 1;
  const promptTokens = n * prompts.reduce((sum, prompt) => sum + prompt.tokens.length, 0);
  const ofPrompts = format.promptLogprobs === null ? 0 : promptTokens * (format.promptLogprobs + 1);
  // An answer without a number has a token at least.
  const ofAnswers = choices * Math.min(maxTokens ?? 1, maxContext) * each;
  if (ofAnswers + ofPrompts > maxRequestLogprobs) {
    throw new AppError(
      'invalid_request',
      `Expected at most ${maxRequestLogprobs} logprobs in all answers together, got ${ofAnswers} of tokens and ${ofPrompts} of prompts. ` +
        'Ask for fewer, or split the request.',
      { details: { param: ofAnswers > ofPrompts ? 'logprobs' : 'prompt_logprobs', code: 'invalid_value' } },
    );
  }
  if (maxTokens !== null) return maxTokens;
  const most = Math.min(maxRequestTokens, each === 0 ? maxRequestTokens : (maxRequestLogprobs - ofPrompts) / each);
  const share = Math.floor(most / choices);
  return share >= maxContext ? null : share;
}
