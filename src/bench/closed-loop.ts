/** Asks all questions, so many at a time. */
import { performance } from 'node:perf_hooks';
import type { DiagnosisPrompt } from '../validate/recording/prompt.ts';
import type { BenchPoint } from './bench-point.ts';
import { failed, readChatStream } from './chat-stream.ts';
import type { RequestRecord } from './request-record.ts';
import type { ServerClient } from './server-client.ts';
import { withContext } from './with-context.ts';

export interface LoopOptions {
  readonly client: ServerClient;
  readonly model: string;
  readonly prompts: readonly DiagnosisPrompt[];
  readonly point: BenchPoint;
  readonly outputLength: number;
  readonly ignoreEos: boolean;
  readonly seed: number;
  /** Keeps prompts from being found in the server's prefix cache by those who ask later; null where it has no such field. */
  readonly cacheSalt: string | null;
  /** Each chunk tells the tokens so far; false where the server has no such option. */
  readonly continuousUsage: boolean;
  readonly signal: AbortSignal;
  readonly onAnswer: () => void;
}

export interface LoopResult {
  readonly records: readonly RequestRecord[];
  /** From the first request to the last answer. */
  readonly durationMs: number;
}

/** @throws the abort of the signal */
export async function closedLoop(options: LoopOptions): Promise<LoopResult> {
  const { prompts, point, signal } = options;
  const records: RequestRecord[] = [];
  let next = 0;
  const started = performance.now();
  const client = async () => {
    while (next < prompts.length) {
      const index = next++;
      records.push(await ask(options, prompts[index]!));
      signal.throwIfAborted();
      options.onAnswer();
    }
  };
  await Promise.all(Array.from({ length: Math.min(point.concurrency, prompts.length) }, client));
  return { records, durationMs: performance.now() - started };
}

async function ask(options: LoopOptions, prompt: DiagnosisPrompt): Promise<RequestRecord> {
  const { client, model, point, prompts, outputLength, ignoreEos, seed, cacheSalt, continuousUsage, signal } = options;
  const { variant, temperature, contextLength } = point;
  const sentAt = performance.now();
  const own = { prompt: prompt.id, category: prompt.category };
  try {
    const response = await client.chat(
      {
        model,
        messages: withContext(prompt, prompts, contextLength),
        max_tokens: outputLength,
        temperature,
        seed,
        ...(ignoreEos ? { ignore_eos: true } : {}),
        ...(variant.drafter === null ? {} : { drafter: variant.drafter }),
        ...(variant.draftTokens === null ? {} : { draft_tokens: variant.draftTokens }),
        ...(cacheSalt === null ? {} : { cache_salt: cacheSalt }),
        stream_options: { include_usage: true, ...(continuousUsage ? { continuous_usage_stats: true } : {}) },
      },
      signal,
    );
    return { ...own, ...(await readChatStream(response, { sentAt, now: () => performance.now() })) };
  } catch (error) {
    signal.throwIfAborted();
    return { ...own, ...failed(error instanceof Error ? error.message : String(error)) };
  }
}
