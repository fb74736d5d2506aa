/** The pair of models in the repository, opened as the server opens it, and answers from it in full. */
import { resolve } from 'node:path';
import type { FinishEvent } from '../../src/core/decode-event.ts';
import { GREEDY, type SamplingParams } from '../../src/core/sampling-params.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { DecodeEngine } from '../../src/engine/decode-engine.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
import { type OpenedEngine, openEngine } from '../../src/engine/open-engine.ts';
import { CPU } from '../../src/onnx/device.ts';
import { TEST_THREADS } from './runtime.ts';

export const EMBEDDED_TARGET = resolve(import.meta.dirname, '../../models/smollm2-135m-instruct');
export const EMBEDDED_DRAFTER = `${EMBEDDED_TARGET}-dflash`;

export interface EmbeddedOptions {
  /** Default: the folder of the repository. */
  readonly target?: string;
  readonly drafter: 'dflash' | 'ngram' | 'none';
  readonly weights: 'int8' | 'f32';
  readonly cacheDir: string;
}

export async function openEmbedded({
  target = EMBEDDED_TARGET,
  drafter,
  weights,
  cacheDir,
}: EmbeddedOptions): Promise<OpenedEngine> {
  const opened = await openEngine({
    target,
    drafters: [drafter === 'dflash' ? EMBEDDED_DRAFTER : drafter],
    drafterModules: [],
    draftTokens: drafter === 'dflash' ? 5 : 'auto',
    weights,
    device: CPU,
    threads: TEST_THREADS,
    maxContext: 512,
    maxSequences: 8,
    maxRows: 256,
    maxWaiting: 64,
    servedModelName: null,
    cacheDir,
    observers: [],
  });
  await opened.warmUp();
  return opened;
}

export interface Answer {
  readonly tokens: readonly TokenId[];
  readonly text: string;
  readonly finish: FinishEvent;
}

export interface Question {
  readonly prompt: string;
  readonly maxTokens: number;
  readonly sampling?: SamplingParams;
  readonly draftTokens?: number;
}

let requests = 0;

export function toRequest(engine: DecodeEngine, question: Question): GenerateRequest {
  return {
    id: `request-${requests++}`,
    promptTokens: engine.text.encode(engine.text.renderChat([{ role: 'user', content: question.prompt }]), {
      addSpecialTokens: false,
    }),
    sampling: question.sampling ?? GREEDY,
    maxTokens: question.maxTokens,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: false,
    skipSpecialTokens: true,
    drafter: null,
    draftTokens: question.draftTokens ?? null,
  };
}

export async function ask(engine: DecodeEngine, question: Question): Promise<Answer> {
  const tokens: TokenId[] = [];
  let text = '';
  for await (const event of engine.generate(toRequest(engine, question), new AbortController().signal)) {
    if (event.type === 'finish') return { tokens, text, finish: event };
    tokens.push(...event.tokens);
    text += event.text;
  }
  throw new Error('The answer has no end');
}

/** All at once: as many share the steps as the engine serves, and the others wait their turn. */
export function askAll(engine: DecodeEngine, questions: readonly Question[]): Promise<Answer[]> {
  return Promise.all(questions.map((question) => ask(engine, question)));
}
