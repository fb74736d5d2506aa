/** Every operation over HTTP: what it takes, and what it answers. */
import type { z } from 'zod';
import { loadBody } from '../routes/drafters.ts';
import { chatRequestSchema } from '../schemas/chat-request.ts';
import { completionRequestSchema } from '../schemas/completion-request.ts';
import { chatCompletion, chatCompletionChunk, completion, completionChunk } from '../schemas/responses/answers.ts';
import { drafterJob, drafterJobList, drafterList, swap } from '../schemas/responses/drafters.ts';
import { model, modelList, serverInfo, status, version } from '../schemas/responses/server.ts';
import { detokenized, renderedPrompts, tokenized } from '../schemas/responses/texts.ts';
import { DETOKENIZE_BODY, RETURN_TOKEN_STRS, TOKENIZE_TEXT_BODY } from '../schemas/text-requests.ts';
import type { RequestLimits } from '../server-config.ts';
import {
  compareBody,
  diagnoseBody,
  exportHardBody,
  recordBody,
  validateBody,
  watchBody,
} from '../validation/validation-request.ts';

export interface Operation {
  readonly method: 'get' | 'post' | 'delete';
  /** In OpenAPI's spelling. */
  readonly path: string;
  readonly summary: string;
  /** Any of these. */
  readonly body?: readonly z.ZodType[];
  readonly status?: number;
  /** Null: not JSON. */
  readonly answer: z.ZodType | null;
  /** What a `data:` line of a stream holds, beside errors and the mark of its end. */
  readonly event?: z.ZodType;
  /** Content type of an answer that is not JSON. */
  readonly contentType?: string;
  /** Statuses of refusals, beside 403 by a wrong name of the server, and 401 where a key is needed. */
  readonly refusals: readonly number[];
  /** Needs no API key. */
  readonly isOpen?: true;
}

const BODY = [400, 413, 415];
const TEXT = [...BODY, 404, 408, 429, 503];
const GENERATION = [...TEXT, 500];

export function operations(limits: RequestLimits): readonly Operation[] {
  const completionBody = completionRequestSchema(limits);
  const chatBody = chatRequestSchema(limits);
  const readiness = (path: string): Operation => ({
    method: 'get',
    path,
    summary: 'Whether requests are taken',
    answer: status,
    refusals: [503],
    isOpen: true,
  });
  const info = (path: string): Operation => ({
    method: 'get',
    path,
    summary: 'What is in force, and the acceptance length since the start',
    answer: serverInfo,
    refusals: [503],
  });
  const job = (path: string, body: z.ZodType, summary: string): Operation => ({
    method: 'post',
    path,
    summary,
    body: [body],
    status: 202,
    answer: drafterJob,
    refusals: [...BODY, 403, 404, 429, 503],
  });
  return [
    {
      method: 'post',
      path: '/v1/completions',
      summary: 'Complete prompts; the same body is taken over WebSocket',
      body: [completionBody],
      answer: completion,
      event: completionChunk,
      refusals: GENERATION,
    },
    {
      method: 'post',
      path: '/v1/chat/completions',
      summary: 'Answer a chat; the same body is taken over WebSocket',
      body: [chatBody],
      answer: chatCompletion,
      event: chatCompletionChunk,
      refusals: GENERATION,
    },
    {
      method: 'post',
      path: '/v1/completions/render',
      summary: 'The prompts of a completion, in text and token ids',
      body: [completionBody],
      answer: renderedPrompts,
      refusals: TEXT,
    },
    {
      method: 'post',
      path: '/v1/chat/completions/render',
      summary: 'The prompt of a chat, in text and token ids',
      body: [chatBody],
      answer: renderedPrompts,
      refusals: TEXT,
    },
    {
      method: 'post',
      path: '/tokenize',
      summary: 'Token ids of a text or a chat',
      body: [TOKENIZE_TEXT_BODY, chatBody.extend(RETURN_TOKEN_STRS.shape)],
      answer: tokenized,
      refusals: TEXT,
    },
    {
      method: 'post',
      path: '/detokenize',
      summary: 'The text of token ids',
      body: [DETOKENIZE_BODY],
      answer: detokenized,
      refusals: TEXT,
    },
    { method: 'get', path: '/v1/models', summary: 'The served model', answer: modelList, refusals: [503] },
    { method: 'get', path: '/v1/models/{id}', summary: 'The served model', answer: model, refusals: [404, 503] },
    { method: 'get', path: '/v1/drafters', summary: 'Drafters in force', answer: drafterList, refusals: [503] },
    {
      method: 'post',
      path: '/v1/drafters/{name}/load',
      summary: 'Put another drafter in the place of a named one',
      body: [loadBody],
      answer: swap,
      refusals: [...BODY, 403, 404, 429, 503],
    },
    job('/v1/drafters/{name}/validate', validateBody, 'Measure a drafter'),
    job('/v1/drafters/{name}/diagnose', diagnoseBody, 'Find out what is wrong with a drafter'),
    job('/v1/drafters/{name}/record', recordBody, 'Record training data of the layers that a drafter taps'),
    job('/v1/drafters/compare', compareBody, 'Compare drafters'),
    job('/v1/drafters/export-hard', exportHardBody, 'Export what a validated drafter failed on'),
    job('/v1/drafters/watch', watchBody, 'Measure the checkpoints of training runs'),
    {
      method: 'get',
      path: '/v1/drafters/jobs',
      summary: 'Jobs that measure drafters, newest first',
      answer: drafterJobList,
      refusals: [403],
    },
    { method: 'get', path: '/v1/drafters/jobs/{id}', summary: 'A job', answer: drafterJob, refusals: [403, 404] },
    { method: 'delete', path: '/v1/drafters/jobs/{id}', summary: 'Cancel a job', answer: drafterJob, refusals: [403, 404] },
    info('/server_info'),
    info('/get_server_info'),
    { method: 'get', path: '/metrics', summary: 'Counters', answer: null, contentType: 'text/plain', refusals: [] },
    readiness('/health'),
    readiness('/ready'),
    readiness('/ping'),
    { method: 'get', path: '/live', summary: 'Whether the process runs', answer: status, refusals: [], isOpen: true },
    { method: 'get', path: '/version', summary: 'Version of this server', answer: version, refusals: [] },
  ];
}
