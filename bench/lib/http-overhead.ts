/** Streaming over HTTP against the same requests in process. */
import type { Engine } from '../../src/engine/engine.ts';
import { silentLogger } from '../../src/server/logger.ts';
import { createServerMetrics } from '../../src/server/metrics.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { startServer } from '../../src/server/start-server.ts';
import { answer, chatRequest } from './generate.ts';
import { median } from './statistics.ts';

export interface HttpOverhead {
  /** Tokens per second, first to last token. */
  readonly http: number;
  readonly inProcess: number;
  readonly ratio: number;
}

export async function httpOverhead(
  engine: Engine,
  prompts: readonly string[],
  maxTokens: number,
  repeats: number,
): Promise<HttpOverhead> {
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    status: () => ({ state: 'ready', engine }),
    metrics: createServerMetrics({ modelName: engine.info.model, version: 'bench', load: () => engine.load() }),
    logger: silentLogger,
    version: 'bench',
    config: DEFAULT_SERVER_CONFIG,
  });
  const http: number[] = [];
  const inProcess: number[] = [];
  const ratios: number[] = [];
  try {
    for (let repeat = 0; repeat < repeats; repeat++) {
      for (const prompt of prompts) {
        const local = await answer(engine, chatRequest(engine, prompt, maxTokens));
        const rate = ((local.tokens.length - 1) / local.decodeMs) * 1000;
        const remote = await streamRate(server.url, engine.info.model, prompt, maxTokens, local.tokens.length);
        inProcess.push(rate);
        http.push(remote);
        ratios.push(remote / rate);
      }
    }
  } finally {
    await server.close();
  }
  return { http: median(http), inProcess: median(inProcess), ratio: median(ratios) };
}

async function streamRate(url: string, model: string, prompt: string, maxTokens: number, expected: number): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: prompt }],
      max_tokens: maxTokens,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}: ${await response.text()}`);
  let first = 0;
  let last = 0;
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    const piece = decoder.decode(chunk, { stream: true });
    text += piece;
    if (first === 0 && /"content":"[^"]/.test(piece)) first = performance.now();
    last = performance.now();
  }
  const tokens = Number(/"completion_tokens":(\d+)/.exec(text)?.[1]);
  if (tokens !== expected) throw new Error(`Expected ${expected} tokens over HTTP, got ${tokens}`);
  return ((tokens - 1) / (last - first)) * 1000;
}
