/** From a checked request to what the engine runs: one GenerateRequest per choice. */
import type { SamplingParams } from '../core/sampling-params.ts';
import type { TokenRules } from '../core/token-rules.ts';
import type { Engine, EngineInfo, GenerateRequest } from '../engine/engine.ts';
import type { AnswerFormat, EncodedPrompt } from './answer-format.ts';
import { choiceSeed } from './choice-seed.ts';
import type { ParamNames } from './name-param.ts';
import type { GenerationParams } from './schemas/generation-fields.ts';

/** A request that is ready to run. */
export interface GenerationPlan {
  /** Id of the answer, prefix included. */
  readonly id: string;
  readonly engine: Engine;
  readonly format: AnswerFormat;
  readonly params: GenerationParams;
  /** The seed that was asked for, or the random one that took its place. */
  readonly seed: number;
  /** One per choice: prompt 0's answers first. */
  readonly requests: readonly GenerateRequest[];
  readonly prompts: readonly EncodedPrompt[];
  /** Tokens of all prompts, each counted once however many answers it gets. */
  readonly promptTokens: number;
}

export interface PlanInput {
  readonly requestId: string;
  readonly engine: Engine;
  readonly format: AnswerFormat;
  readonly params: GenerationParams;
  readonly prompts: readonly EncodedPrompt[];
  readonly rules: TokenRules;
  /** Of each answer; null: what the context leaves. */
  readonly maxTokens: number | null;
  readonly seed: number;
}

let planned = 0;

/** Lays out the choices of one request. */
export function planGeneration(input: PlanInput): GenerationPlan {
  const { engine, format, params, prompts, maxTokens, seed } = input;
  const id = `${format.idPrefix}${input.requestId}`;
  // Callers may send the same id twice; the engine must not see it twice.
  planned += 1;
  const runId = `${id}-${planned}`;
  const sampling = samplingOf(params, engine.info);
  const choicePrompts = prompts.flatMap((prompt) => new Array<EncodedPrompt>(params.n).fill(prompt));
  return {
    id,
    engine,
    format,
    params,
    seed,
    prompts,
    requests: choicePrompts.map(({ tokens }, choice) => ({
      id: `${runId}-${choice}`,
      promptTokens: tokens,
      sampling: { ...sampling, seed: choiceSeed(seed, choice) },
      // Of an answer without tokens only the prompt is told; it is computed by the step that chooses a first one.
      maxTokens: maxTokens === 0 ? 1 : maxTokens,
      stopTokenIds: params.stopTokenIds,
      stopStrings: params.stopStrings,
      includeStopString: params.includeStopString,
      ignoreEos: params.ignoreEos,
      skipSpecialTokens: params.skipSpecialTokens,
      shownTokens: format.shownTokens,
      drafter: params.drafter,
      draftTokens: params.draftTokens,
      priority: params.priority,
      cacheSalt: params.cacheSalt,
      trace: params.details.trace,
      rules: input.rules,
      logprobs: params.details.logprobs,
      promptLogprobs: format.promptLogprobs,
    })),
    promptTokens: prompts.reduce((sum, prompt) => sum + prompt.tokens.length, 0),
  };
}

/** How the caller sent what an engine may refuse. */
export function paramNames({ format, params }: Pick<GenerationPlan, 'format' | 'params'>): ParamNames {
  // Tools are the other reason for a structure.
  return { prompt: format.promptParam, structure: params.structure?.param ?? 'tools' };
}

/** What the request says, else what the model's folder asks for, else the neutral value. */
function samplingOf(params: GenerationParams, info: EngineInfo): Omit<SamplingParams, 'seed'> {
  const defaults = info.samplingDefaults;
  return {
    temperature: params.temperature ?? defaults.temperature ?? 1,
    topP: params.topP ?? defaults.topP ?? 1,
    topK: params.topK ?? defaults.topK ?? 0,
    minP: params.minP ?? defaults.minP ?? 0,
  };
}
