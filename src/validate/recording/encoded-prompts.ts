import { AppError } from '../../core/app-error.ts';
import type { TokenId } from '../../core/token.ts';
import type { DiagnosisPrompt } from './prompt.ts';

/** A prompt as the target reads it. */
export interface EncodedPrompt extends DiagnosisPrompt {
  readonly promptTokens: readonly TokenId[];
}

export interface FittingPrompts {
  readonly prompts: readonly EncodedPrompt[];
  /** Ids of those that leave no room for an answer. */
  readonly tooLong: readonly string[];
}

/**
 * @param maxContext positions of prompt and answer
 * @throws AppError `invalid_config` when fewer than two prompts fit
 */
export function fittingPrompts(prompts: readonly EncodedPrompt[], maxContext: number): FittingPrompts {
  const empty = prompts.find(({ promptTokens }) => promptTokens.length === 0);
  if (empty !== undefined) {
    throw new AppError('invalid_config', `Expected prompts of at least one token, got none for ${empty.id}; remove it`);
  }
  const fitting = prompts.filter(({ promptTokens }) => promptTokens.length < maxContext);
  if (fitting.length < 2) {
    throw new AppError(
      'invalid_config',
      `Expected at least 2 prompts shorter than the context of ${maxContext} tokens, got ${fitting.length} of ${prompts.length}; ` +
        'shorten them, or raise --max-context as far as the model allows',
    );
  }
  const kept = new Set(fitting);
  return { prompts: fitting, tooLong: prompts.flatMap((prompt) => (kept.has(prompt) ? [] : [prompt.id])) };
}
