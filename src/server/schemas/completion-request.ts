import { z } from 'zod';
import { AppError } from '../../core/app-error.ts';
import type { RequestLimits } from '../server-config.ts';
import { logprobCount } from './detail-fields.ts';
import { type GenerationParams, generationFields, toGenerationParams } from './generation-fields.ts';
import { jsonSchema } from './json-schema.ts';
import { NEUTRAL_COMPLETION_FIELDS, NEUTRAL_FIELDS } from './neutral-field.ts';
import { fieldError, parseRequest } from './parse-request.ts';

const DEFAULT_MAX_TOKENS = 16;

const promptText = z.string().min(1);
const promptIds = z.array(z.int().min(0)).min(1);

/** One prompt: text, or the token ids themselves. */
export type Prompt = string | readonly number[];

export interface CompletionRequest {
  readonly prompts: readonly Prompt[];
  readonly params: GenerationParams;
  /** Whether the text begins with the prompt's. */
  readonly echo: boolean;
}

/** Parses the body of `POST /v1/completions`. */
export type ParseCompletionRequest = (body: unknown) => CompletionRequest;

export function completionRequestSchema(limits: RequestLimits) {
  return z.strictObject({
    ...generationFields(limits),
    ...NEUTRAL_FIELDS,
    ...NEUTRAL_COMPLETION_FIELDS,
    prompt: z
      .custom<string | readonly string[] | readonly number[] | readonly (readonly number[])[]>(isPromptField)
      .meta(jsonSchema(z.union([promptText, z.array(promptText).min(1), promptIds, z.array(promptIds).min(1)])))
      .describe('a string, a list of strings, a list of token ids or a list of lists of token ids, none of them empty'),
    max_tokens: z.int().min(0).nullish().describe('a whole number from 1, or 0 with echo'),
    logprobs: logprobCount(),
    echo: z.boolean().nullish().describe('true or false'),
  });
}

/** @throws (the parser) AppError `invalid_request` naming the field that cannot be served as written. */
export function createCompletionRequestParser(limits: RequestLimits): ParseCompletionRequest {
  const schema = completionRequestSchema(limits);
  return (body) => {
    const fields = parseRequest(schema, body);
    const prompts = toPrompts(fields.prompt);
    const maxTokens = fields.max_tokens ?? DEFAULT_MAX_TOKENS;
    const echo = fields.echo ?? false;
    if (maxTokens === 0 && !echo) throw fieldError('max_tokens', 'a whole number from 1, or 0 with echo', 0);
    const params = toGenerationParams(fields, { maxTokens, logprobs: fields.logprobs ?? null }, limits);
    const choices = prompts.length * params.n;
    if (choices > limits.maxChoices) {
      throw new AppError(
        'invalid_request',
        `Expected n times the number of prompts to be at most ${limits.maxChoices}, got ${choices}. Split the request.`,
        { details: { param: params.n > 1 ? 'n' : 'prompt', code: 'invalid_value' } },
      );
    }
    return { prompts, params, echo };
  };
}

/** By hand, because it stops at the first wrong element: a list may have a million of them. */
function isPromptField(value: unknown): boolean {
  if (typeof value === 'string') return value !== '';
  if (!Array.isArray(value) || value.length === 0) return false;
  if (typeof value[0] === 'string') return value.every((item) => typeof item === 'string' && item !== '');
  if (Array.isArray(value[0])) return value.every((item) => Array.isArray(item) && isTokenIds(item));
  return isTokenIds(value);
}

function isTokenIds(list: readonly unknown[]): boolean {
  return list.length > 0 && list.every((item) => Number.isSafeInteger(item) && (item as number) >= 0);
}

function toPrompts(prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[]): readonly Prompt[] {
  if (typeof prompt === 'string') return [prompt];
  return typeof prompt[0] === 'number' ? [prompt as readonly number[]] : (prompt as readonly Prompt[]);
}
