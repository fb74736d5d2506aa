/** A streamed chat over HTTP. k6 hands the stream over when it has ended, so times come from the server's own record in it. */
import http from 'k6/http';
import { CHAT_PATH, chatBody } from './body.ts';
import { record, recordRequest, requestTags } from './metrics.ts';
import { headers, settings } from './settings.ts';
import type { Answer, Chunk, ErrorType, Prompt, Sampling, Tags } from './types.ts';

export interface ChatOptions {
  readonly sampling?: Sampling;
  readonly tags?: Tags;
  /** A client that does not wait longer than that. */
  readonly timeout?: string;
}

/** Asks, and records what came of it. */
export function chat(prompt: Prompt, { sampling = {}, tags = {}, timeout = '120s' }: ChatOptions = {}): Answer {
  const own = requestTags(prompt, sampling, tags);
  recordRequest(own);
  const response = http.post(settings.baseUrl + CHAT_PATH, chatBody(prompt, sampling), {
    headers: headers(),
    tags: { name: CHAT_PATH, ...own },
    timeout,
  });
  const body = typeof response.body === 'string' ? response.body : '';
  const answer = readAnswer(response.status, response.error_code, body, response.timings.duration);
  record(answer, own);
  return answer;
}

const TIMEOUT_CODE = 1050;

function readAnswer(status: number, errorCode: number, body: string, e2e: number): Answer {
  if (status === 0) return failed(errorCode === TIMEOUT_CODE ? 'timeout' : 'network', `no answer (code ${errorCode})`, e2e);
  if (status !== 200) return failed(statusType(status), body, e2e);
  const data = body.split('\n\n').filter((event) => event.startsWith('data: '));
  if (data.pop() !== 'data: [DONE]') return failed('stream', 'the stream did not end with [DONE]', e2e);
  let chunks: readonly Chunk[];
  try {
    chunks = data.map((event) => JSON.parse(event.slice('data: '.length)) as Chunk);
  } catch (error) {
    return failed('decode', String(error), e2e);
  }
  const error = chunks.find((chunk) => chunk.error !== undefined)?.error;
  if (error !== undefined) return failed(error.type === 'overloaded_error' ? 'overloaded' : 'stream', error.message, e2e);
  const { usage, metrics } = chunks.find((chunk) => chunk.metrics !== undefined) ?? {};
  if (metrics === undefined) return failed('stream', 'the answer did not tell its usage', e2e);
  return {
    error: null,
    text: chunks.map(textOf).join(''),
    tokens: usage?.completion_tokens ?? 0,
    ttft: metrics.time_to_first_token_ms,
    tpot: metrics.mean_itl_ms,
    e2e,
    gaps: [],
    speculation: metrics.speculative_decoding ?? null,
  };
}

/** What a chunk says: a target that reasons may spend its whole answer on that. */
export function textOf({ choices }: Chunk): string {
  const { content, reasoning } = choices?.[0]?.delta ?? {};
  return (reasoning ?? '') + (content ?? '');
}

function statusType(status: number): ErrorType {
  if (status === 429 || status === 503) return 'overloaded';
  return status < 500 ? 'http_4xx' : 'http_5xx';
}

export function failed(type: ErrorType, message: string, e2e: number): Answer {
  return { error: { type, message }, text: '', tokens: 0, ttft: null, tpot: null, e2e, gaps: [], speculation: null };
}
