/** What both transports do with a request body: check it, plan it, run it. */
import { createHash } from 'node:crypto';
import { AppError } from '../core/app-error.ts';
import type { Engine, EngineInfo, EngineStatus, QueuedRequest } from '../engine/engine.ts';
import { answerChunks, wholeAnswer } from './answer.ts';
import { answerTokens, checkAnswerTokens } from './answer-budget.ts';
import type { EncodedPrompt } from './answer-format.ts';
import type { AnswerRecord } from './answer-record.ts';
import type { AnswerHead } from './answer-statistics.ts';
import { createChatBodyParser } from './chat/chat-body.ts';
import { runChoices, startEvents } from './choice-events.ts';
import type { Clock } from './clock.ts';
import { createCompletionBodyParser } from './completion-body.ts';
import { type GenerationPlan, paramNames, planGeneration } from './generation-plan.ts';
import type { ServerMetrics } from './metrics.ts';
import { nameParam } from './name-param.ts';
import type { ParseBody } from './parsed-request.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';
import { fieldError } from './schemas/parse-request.ts';
import { toTokenRules } from './schemas/rule-fields.ts';
import { checkTokenRange } from './schemas/token-range.ts';
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
  readonly #parse: Readonly<Record<GenerationKind, ParseBody>>;

  constructor(options: GenerationServiceOptions) {
    this.#options = options;
    const { config } = options;
    this.#parse = { completion: createCompletionBodyParser(config.limits), chat: createChatBodyParser(config) };
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
   * @param signal Ends the wait for a structure to be compiled.
   * @throws AppError what cannot be served, and why.
   */
  async plan(kind: GenerationKind, body: unknown, requestId: string, signal: AbortSignal): Promise<GenerationPlan> {
    const engine = this.readyEngine();
    const parsed = this.#parse[kind](body);
    const { params, promptCount } = parsed;
    const { info } = engine;
    checkModel(params.model, info);
    checkTokenRange('stop_token_ids', params.stopTokenIds, info);
    if (params.details.trace && !this.#options.config.allowTrace) {
      throw fieldError('trace', 'false or absent, as this server runs without --allow-trace', true);
    }
    const { limits } = this.#options.config;
    checkAnswerTokens(params, promptCount, info, limits);
    // Where there is no room for prompts of a token there is none for any, and no use in preparing them.
    const least = { promptTokens: [0], maxTokens: 1, drafter: params.drafter };
    engine.checkQueue(new Array<QueuedRequest>(params.n * promptCount).fill(least));
    const tokenRules = await toTokenRules(params.rules, engine, signal);
    const { prompts: whole, format, ...structure } = await parsed.prepare(engine, signal);
    const rules = { ...tokenRules, ...structure };
    const prompts = whole.map((prompt) => truncate(prompt, params, info));
    const maxTokens = answerTokens({ format, params, prompts }, info, limits);
    try {
      await engine.checkRules(rules, signal);
    } catch (error) {
      throw nameParam(error, paramNames({ format, params }));
    }
    return planGeneration({
      requestId: params.requestId ?? requestId,
      engine,
      format,
      params,
      prompts,
      rules,
      maxTokens,
      seed: params.seed ?? this.#options.randomSeed(),
    });
  }

  /**
   * The prompts of a body, as the model would get them.
   * @throws AppError what cannot be served, and why; AbortedError
   */
  async render(kind: GenerationKind, body: unknown, signal: AbortSignal): Promise<readonly EncodedPrompt[]> {
    const engine = this.readyEngine();
    const parsed = this.#parse[kind](body);
    checkModel(parsed.params.model, engine.info);
    const { prompts } = await parsed.prepare(engine, signal);
    return prompts.map((prompt) => truncate(prompt, parsed.params, engine.info));
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
    record.begin(plan);
    const { metrics, clock } = this.#options;
    return record.observe(runChoices(plan, signal), metrics, clock);
  }

  #head(plan: GenerationPlan): AnswerHead {
    const { clock, version, config } = this.#options;
    return {
      plan,
      created: Math.floor(clock.epochMs() / 1000),
      systemFingerprint: systemFingerprint(plan.engine.info, version),
      specMetrics: plan.params.details.specMetrics ?? config.perRequestSpecMetrics,
    };
  }
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

/** @throws AppError `invalid_request` for more tokens than a context has */
function truncate(prompt: EncodedPrompt, { truncatePromptTokens: asked, maxTokens }: GenerationParams, info: EngineInfo) {
  if (asked === null) return prompt;
  if (asked > info.maxContext) {
    throw fieldError('truncate_prompt_tokens', `at most the context of ${info.maxContext} tokens`, asked);
  }
  const most = asked === -1 ? Math.max(info.maxContext - Math.max(maxTokens ?? 1, 1), 1) : asked;
  if (prompt.tokens.length <= most) return prompt;
  return { text: null, tokens: prompt.tokens.slice(-most) };
}

/** Changes whenever answers may: another version, model or drafter. */
function systemFingerprint(info: EngineInfo, version: string): string {
  const facts = [version, info.model, ...info.drafters.flatMap(({ name, maxDraftTokens }) => [name, maxDraftTokens])].join(
    '\n',
  );
  return `fp_${createHash('sha256').update(facts).digest('hex').slice(0, 12)}`;
}
