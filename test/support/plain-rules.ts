/** What rules make of an answer, written from their definition and without any of the code that enforces them. */
import type { TokenId } from '../../src/core/token.ts';
import type { TokenLogprobs } from '../../src/core/token-logprobs.ts';
import { NO_RULES, type TokenRules } from '../../src/core/token-rules.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
import { sampleToken } from '../../src/sampling/sample-token.ts';
import { tokenLogprobs } from '../../src/sampling/token-logprobs.ts';
import type { NextLogits } from './scripted-target.ts';

/**
 * The row that a token is chosen from.
 * @param ends tokens that would end the answer
 */
export function ruledRow(
  raw: Float32Array,
  rules: TokenRules,
  prompt: readonly TokenId[],
  answer: readonly TokenId[],
  ends: readonly TokenId[],
): Float32Array {
  return raw.map((logit, id) => {
    const completes = (word: readonly TokenId[]) =>
      word.at(-1) === id && word.slice(0, -1).join() === answer.slice(answer.length - word.length + 1).join();
    const fits = (word: readonly TokenId[]) => word.length <= answer.length + 1;
    const forbidden =
      (rules.allowedTokenIds !== null && !rules.allowedTokenIds.includes(id)) ||
      rules.badWords.some((word) => fits(word) && completes(word)) ||
      (answer.length < rules.minTokens && ends.includes(id));
    if (forbidden) return Number.NEGATIVE_INFINITY;
    let value = Math.fround(logit + (rules.logitBias.get(id) ?? 0));
    if (prompt.includes(id) || answer.includes(id)) {
      value = Math.fround(value > 0 ? value / rules.repetitionPenalty : value * rules.repetitionPenalty);
    }
    const count = answer.filter((token) => token === id).length;
    return count === 0 ? value : Math.fround(value - rules.frequencyPenalty * count - rules.presencePenalty);
  });
}

export interface PlainAnswer {
  readonly tokens: readonly TokenId[];
  readonly logprobs: readonly TokenLogprobs[];
  readonly promptLogprobs: readonly TokenLogprobs[];
  /** No token was left. */
  readonly stuck: boolean;
}

/** Decodes a request with a length limit token by token; stop strings do not count. */
export function plainAnswer(nextLogits: NextLogits, eos: readonly TokenId[], request: GenerateRequest): PlainAnswer {
  const { promptTokens, rules = NO_RULES, sampling, maxTokens, ignoreEos, stopTokenIds } = request;
  const ends = [...eos, ...stopTokenIds];
  const stops = ignoreEos ? stopTokenIds : ends;
  const tokens: TokenId[] = [];
  const logprobs: TokenLogprobs[] = [];
  const promptLogprobs = promptTokens
    .slice(1)
    .map((token, i) => tokenLogprobs(nextLogits(promptTokens.slice(0, i + 1)), token, request.promptLogprobs ?? 0));
  while (tokens.length < maxTokens!) {
    const prefix = [...promptTokens, ...tokens];
    const raw = nextLogits(prefix);
    const row = ruledRow(raw, rules, promptTokens, tokens, ends);
    if (row.every((logit) => logit === Number.NEGATIVE_INFINITY)) return { tokens, logprobs, promptLogprobs, stuck: true };
    const token = sampleToken(row, sampling, prefix.length);
    tokens.push(token);
    logprobs.push(tokenLogprobs(raw, token, request.logprobs ?? 0));
    if (stops.includes(token)) break;
  }
  return { tokens, logprobs, promptLogprobs, stuck: false };
}
