/** Speed through the engine, one request at a time, plain and speculative by turns. */

import { GREEDY } from '../../core/sampling-params.ts';
import type { Engine, GenerateRequest } from '../../engine/engine.ts';

export interface SpeedPassOptions {
  readonly engine: Engine;
  readonly prompts: readonly { readonly id: string; readonly promptTokens: readonly number[] }[];
  readonly maxTokens: number;
  readonly repeats: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface SpeedSample {
  readonly id: string;
  /** From the first token to the last, over all repeats. */
  readonly plainMs: number;
  readonly speculativeMs: number;
  /** Tokens behind the first one, over all repeats. */
  readonly tokens: number;
  /** First place where the two answers differ; null when they do not. */
  readonly differsAt: number | null;
}

/** @throws AbortedError */
export async function speedPass(options: SpeedPassOptions): Promise<readonly SpeedSample[]> {
  const { engine } = options;
  const samples: SpeedSample[] = [];
  for (const [i, { id, promptTokens }] of options.prompts.entries()) {
    const sums = { plainMs: 0, speculativeMs: 0, tokens: 0 };
    let differsAt: number | null = null;
    for (let repeat = 0; repeat < options.repeats; repeat++) {
      const run = (drafter: string | null) => timedAnswer(engine, promptTokens, options.maxTokens, drafter, options.signal);
      // Whichever comes second finds warmer caches.
      const speculativeFirst = (i + repeat) % 2 === 1;
      const early = speculativeFirst ? await run(null) : null;
      const plain = await run('none');
      const speculative = early ?? (await run(null));
      sums.plainMs += plain.ms;
      sums.speculativeMs += speculative.ms;
      sums.tokens += plain.tokens.length - 1;
      differsAt ??= firstDifference(plain.tokens, speculative.tokens);
      options.onProgress?.(i * options.repeats + repeat + 1, options.prompts.length * options.repeats);
    }
    samples.push({ id, ...sums, differsAt });
  }
  return samples;
}

function firstDifference(a: readonly number[], b: readonly number[]): number | null {
  for (let i = 0; i < Math.max(a.length, b.length); i++) if (a[i] !== b[i]) return i;
  return null;
}

async function timedAnswer(
  engine: Engine,
  promptTokens: readonly number[],
  maxTokens: number,
  drafter: string | null,
  signal: AbortSignal = new AbortController().signal,
): Promise<{ readonly tokens: readonly number[]; readonly ms: number }> {
  const request: GenerateRequest = {
    id: 'speed',
    promptTokens,
    sampling: GREEDY,
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
  let first = 0;
  for await (const event of engine.generate(request, signal)) {
    if (event.type === 'finish') break;
    if (first === 0) first = performance.now();
    tokens.push(...event.tokens);
  }
  signal.throwIfAborted();
  return { tokens, ms: performance.now() - first };
}
