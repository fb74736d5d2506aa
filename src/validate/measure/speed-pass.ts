/** Speed through the engine, one request at a time, plain and speculative by turns. */

import type { SamplingParams } from '../../core/sampling-params.ts';
import type { Engine, GenerateRequest } from '../../engine/engine.ts';

export interface TimedPrompt {
  readonly id: string;
  readonly promptTokens: readonly number[];
  readonly sampling: SamplingParams;
}

export interface SpeedPassOptions {
  readonly engine: Engine;
  readonly prompts: readonly TimedPrompt[];
  readonly maxTokens: number;
  readonly repeats: number;
  /** Called when all repeats of a prompt are done. */
  readonly onSample: (sample: SpeedSample) => void;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface TimedAnswer {
  readonly tokens: readonly number[];
  /** From the request to the first token. */
  readonly firstTokenMs: number;
  /** From the first token to the last. */
  readonly ms: number;
}

export interface SpeedSample {
  readonly id: string;
  /** From the first token to the last, over all repeats. */
  readonly plainMs: number;
  readonly speculativeMs: number;
  /** Tokens behind the first one, over all repeats. */
  readonly tokens: number;
  /** The speculative answers, one for each repeat. */
  readonly answers: readonly TimedAnswer[];
  /** First place where the two answers differ; null when they do not. */
  readonly differsAt: number | null;
}

/** @throws AbortedError; samples that were complete have been reported */
export async function speedPass(options: SpeedPassOptions): Promise<void> {
  const { engine } = options;
  for (const [i, prompt] of options.prompts.entries()) {
    const sums = { plainMs: 0, speculativeMs: 0, tokens: 0 };
    const answers: TimedAnswer[] = [];
    let differsAt: number | null = null;
    for (let repeat = 0; repeat < options.repeats; repeat++) {
      const run = (drafter: string | null) => timedAnswer(engine, prompt, options.maxTokens, drafter, options.signal);
      // Whichever comes second finds warmer caches.
      const speculativeFirst = (i + repeat) % 2 === 1;
      const early = speculativeFirst ? await run(null) : null;
      const plain = await run('none');
      const speculative = early ?? (await run(null));
      sums.plainMs += plain.ms;
      sums.speculativeMs += speculative.ms;
      sums.tokens += plain.tokens.length - 1;
      answers.push(speculative);
      differsAt ??= firstDifference(plain.tokens, speculative.tokens);
      options.onProgress?.(i * options.repeats + repeat + 1, options.prompts.length * options.repeats);
    }
    options.onSample({ id: prompt.id, ...sums, answers, differsAt });
  }
}

function firstDifference(a: readonly number[], b: readonly number[]): number | null {
  for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) return i;
  return null;
}

async function timedAnswer(
  engine: Engine,
  { promptTokens, sampling }: TimedPrompt,
  maxTokens: number,
  drafter: string | null,
  signal: AbortSignal = new AbortController().signal,
): Promise<TimedAnswer> {
  const request: GenerateRequest = {
    id: 'speed',
    promptTokens,
    sampling,
    maxTokens,
    stopTokenIds: [],
    stopStrings: [],
    includeStopString: false,
    ignoreEos: false,
    skipSpecialTokens: true,
    drafter,
    draftTokens: null,
  };
  const tokens: number[] = [];
  const start = performance.now();
  let first = start;
  for await (const event of engine.generate(request, signal)) {
    if (event.type === 'finish') break;
    if (tokens.length === 0) first = performance.now();
    tokens.push(...event.tokens);
  }
  signal.throwIfAborted();
  return { tokens, firstTokenMs: first - start, ms: performance.now() - first };
}
