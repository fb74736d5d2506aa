import type { TokenRules } from '../core/token-rules.ts';
import type { Engine } from '../engine/engine.ts';
import type { AnswerFormat, EncodedPrompt } from './answer-format.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';

/** A request body that was checked, as far as that goes without an engine. */
export interface ParsedRequest {
  readonly params: GenerationParams;
  readonly promptCount: number;
  /** @throws AppError for what this engine cannot take; AbortedError */
  prepare(engine: Engine, signal: AbortSignal): Promise<PreparedRequest>;
}

/** What an engine is given, what the answer must match and from where on, and the shape that it gets. */
export interface PreparedRequest extends Pick<TokenRules, 'structure' | 'structureAfter'> {
  readonly prompts: readonly EncodedPrompt[];
  readonly format: AnswerFormat;
}

/** Checks the body of one route; throws AppError `invalid_request` naming the field that cannot be served as written. */
export type ParseBody = (body: unknown) => ParsedRequest;
