/** What both transports do with a request body: check it, plan it, run it. */
import { createHash } from 'node:crypto';
import { AppError } from '../core/app-error.ts';
import type { TokenId } from '../core/token.ts';
import type { Engine, EngineInfo, EngineStatus } from '../engine/engine.ts';
import { type AnswerHead, answerChunks, wholeAnswer } from './answer.ts';
import type { AnswerFormat } from './answer-format.ts';
import type { AnswerRecord } from './answer-record.ts';
import { chatFormat } from './chat-format.ts';
import { runChoices, startEvents } from './choice-events.ts';
import type { Clock } from './clock.ts';
import { completionFormat } from './completion-format.ts';
import { type GenerationPlan, planGeneration } from './generation-plan.ts';
import type { ServerMetrics } from './metrics.ts';
import { createChatRequestParser } from './schemas/chat-request.ts';
import { createCompletionRequestParser, type Prompt } from './schemas/completion-request.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';
import { fieldError } from './schemas/parse-request.ts';
import type { ServerConfig } from './server-config.ts';

/** The two things that can be asked for, by the path that asks. */
export const GENERATION_PATHS = {
  '/v1/completions': 'completion',
  '/v1/chat/completions': 'chat',
} as const;

export type GenerationKind = (typeof GENERATION_PATHS)[keyof typeof GENERATION_PATHS];

/** Chunks of an answer. Leaving them early ends the answer. */
export interface ChunkStream extends AsyncIterableIterator<object, void, undefined> {
  return(): Promise<IteratorResult<object, void>>;
}

/** On average over a prompt: words have about four, and long runs of blanks or dashes more. */
const MOST_CHARACTERS_PER_TOKEN = 16;
/** Prompts of the longest kind in one request. */
const MOST_FULL_TEXTS = 4;

/** Long enough for a refusal to come back from the engine, too short for a person to notice. */
const REFUSAL_GRACE_MS = 100;

export interface GenerationServiceOptions {
  readonly status: () => EngineStatus;
  readonly config: ServerConfig;
  readonly metrics: ServerMetrics;
  readonly version: string;
  readonly clock: Clock;
  readonly randomSeed: () => number;
}

export class GenerationService {
  readonly #options: GenerationServiceOptions;
  readonly #parse: Readonly<Record<GenerationKind, (body: unknown) => ParsedRequest>>;

  constructor(options: GenerationServiceOptions) {
    this.#options = options;
    const parseCompletion = createCompletionRequestParser(options.config.limits);
    const parseChat = createChatRequestParser(options.config.limits);
    this.#parse = {
      completion: (body) => {
        const { params, prompts } = parseCompletion(body);
        const encode = (engine: Engine) => {
          checkTextLength(
            prompts.filter((prompt) => typeof prompt === 'string'),
            engine.info,
            'prompt',
          );
          return prompts.map((prompt) => promptTokens(engine, prompt));
        };
        return { params, format: completionFormat, promptCount: prompts.length, encode };
      },
      chat: (body) => {
        const { params, messages } = parseChat(body);
        const encode = (engine: Engine) => {
          checkTextLength([messages.map(({ content }) => content).join('')], engine.info, 'messages');
          return [engine.encode(engine.renderChat(messages), { addSpecialTokens: false })];
        };
        return { params, format: chatFormat, promptCount: 1, encode };
      },
    };
  }

  /** @throws AppError `unavailable` while there is no engine that takes requests. */
  readyEngine(): Engine {
    const status = this.#options.status();
    if (status.state === 'ready') return status.engine;
    throw unavailable(status);
  }

  /**
   * Checks a body and prepares its answer; nothing runs yet.
   * @param requestId Names the answer unless the body brings a `request_id`.
   * @throws AppError what cannot be served, and why.
   */
  plan(kind: GenerationKind, body: unknown, requestId: string): GenerationPlan {
    const engine = this.readyEngine();
    const { params, format, promptCount, encode } = this.#parse[kind](body);
    const { info } = engine;
    checkModel(params.model, info);
    const unknownId = params.stopTokenIds.find((id) => id >= info.vocabSize);
    if (unknownId !== undefined) throw tokenRangeError('stop_token_ids', unknownId, info);
    if (params.trace && !this.#options.config.allowTrace) {
      throw fieldError('trace', 'false or absent, as this server runs without --allow-trace', true);
    }
    const choices = params.n * promptCount;
    const tokens = choices * Math.min(params.maxTokens ?? info.maxContext, info.maxContext);
    const { maxRequestTokens } = this.#options.config.limits;
    if (tokens > maxRequestTokens) {
      throw new AppError(
        'invalid_request',
        `Expected answers of at most ${maxRequestTokens} tokens together, got ${choices} of ${tokens / choices}. Ask for less, or split the request.`,
        { details: { param: params.maxTokens === null ? 'n' : 'max_tokens', code: 'invalid_value' } },
      );
    }
    return planGeneration({
      requestId: params.requestId ?? requestId,
      engine,
      format,
      params,
      prompts: encode(engine),
      seed: params.seed ?? this.#options.randomSeed(),
    });
  }

  /**
   * Starts a streamed answer.
   * @throws AppError a refusal by the engine that came before the first token.
   */
  async stream(plan: GenerationPlan, record: AnswerRecord, signal: AbortSignal): Promise<ChunkStream> {
    const source = this.#events(plan, record, signal);
    const chunks = answerChunks(this.#head(plan), await startEvents(source, REFUSAL_GRACE_MS));
    const stream: ChunkStream = {
      next: () => chunks.next(),
      async return() {
        await chunks.return();
        // The chunks close their source only once they have begun to read it.
        await source.return();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]: () => stream,
    };
    return stream;
  }

  /** The whole answer at once. */
  whole(plan: GenerationPlan, record: AnswerRecord, signal: AbortSignal): Promise<object> {
    return wholeAnswer(this.#head(plan), this.#events(plan, record, signal));
  }

  #events(plan: GenerationPlan, record: AnswerRecord, signal: AbortSignal) {
    record.promptTokens = plan.promptTokens;
    const { config, metrics, clock } = this.#options;
    return record.observe(runChoices(plan, signal, config.requestTimeoutMs), metrics, clock);
  }

  #head(plan: GenerationPlan): AnswerHead {
    const { clock, version, config } = this.#options;
    return {
      plan,
      created: Math.floor(clock.epochMs() / 1000),
      systemFingerprint: systemFingerprint(plan.engine.info, version),
      specMetrics: plan.params.specMetrics ?? config.perRequestSpecMetrics,
    };
  }
}

interface ParsedRequest {
  readonly params: GenerationParams;
  readonly format: AnswerFormat;
  readonly promptCount: number;
  encode(engine: Engine): readonly (readonly TokenId[])[];
}

/** Why there is no engine for a request, in words for the caller. */
export function unavailable(status: Exclude<EngineStatus, { state: 'ready' }>): AppError {
  switch (status.state) {
    case 'loading':
      return new AppError('unavailable', 'Expected a loaded model, got one that is still loading. Try again soon.');
    case 'draining':
      return new AppError('unavailable', 'Expected a running server, got one that is shutting down. Try another one.');
    case 'failed':
      return new AppError('unavailable', 'Expected a loaded model, got one that failed to load. See the log of the server.');
  }
}

/** @throws AppError `model_not_found` unless the name is the served one or null. */
export function checkModel(model: string | null, info: EngineInfo): void {
  if (model === null || model === info.model) return;
  throw new AppError(
    'model_not_found',
    `Expected model ${JSON.stringify(info.model)}, got ${JSON.stringify(model)}. Ask for the served one.`,
    {
      details: { param: 'model' },
    },
  );
}

/**
 * Text far beyond the context is refused by its length: to count its tokens would keep everybody waiting.
 * @throws AppError `context_length_exceeded`
 */
function checkTextLength(texts: readonly string[], { maxContext }: EngineInfo, param: string): void {
  const mostEach = maxContext * MOST_CHARACTERS_PER_TOKEN;
  const longest = texts.reduce((most, text) => Math.max(most, text.length), 0);
  const all = texts.reduce((sum, text) => sum + text.length, 0);
  if (longest <= mostEach && all <= mostEach * MOST_FULL_TEXTS) return;
  throw new AppError(
    'context_length_exceeded',
    `Expected a prompt of at most ${mostEach} characters, and ${mostEach * MOST_FULL_TEXTS} in all prompts of a request, ` +
      `for a context of ${maxContext} tokens, got ${longest} and ${all}. Shorten it.`,
    { details: { param, maxContext } },
  );
}

function promptTokens(engine: Engine, prompt: Prompt): readonly TokenId[] {
  if (typeof prompt === 'string') return engine.encode(prompt, { addSpecialTokens: true });
  const unknownId = prompt.find((id) => id >= engine.info.vocabSize);
  if (unknownId !== undefined) throw tokenRangeError('prompt', unknownId, engine.info);
  return prompt;
}

function tokenRangeError(param: string, id: number, info: EngineInfo): AppError {
  return fieldError(param, `token ids from 0 to ${info.vocabSize - 1}`, id);
}

/** Changes whenever answers may: another version, model or drafter. */
function systemFingerprint(info: EngineInfo, version: string): string {
  const facts = [version, info.model, ...info.drafters.flatMap(({ name, maxDraftTokens }) => [name, maxDraftTokens])].join(
    '\n',
  );
  return `fp_${createHash('sha256').update(facts).digest('hex').slice(0, 12)}`;
}
