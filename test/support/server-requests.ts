/** Requests of an application without a socket. */
import type { Hono } from 'hono';
import type { AppEnv } from '../../src/server/app-env.ts';

export type TestApp = Hono<AppEnv>;

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Sends a JSON body. */
export async function post(app: TestApp, path: string, body: unknown, options: PostOptions = {}): Promise<Response> {
  return await app.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify(body),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

export interface ErrorEnvelope {
  readonly error: { readonly message: string; readonly type: string; readonly param: string | null; readonly code: string };
}

/** The body of a refusal, after a check that it is nothing but the envelope. */
export async function errorOf(response: Response): Promise<ErrorEnvelope['error']> {
  if (!/^application\/json/.test(response.headers.get('content-type') ?? '')) throw new Error('an error that is no JSON');
  const body = (await response.json()) as ErrorEnvelope;
  if (Object.keys(body).join() !== 'error') throw new Error(`not an error envelope: ${JSON.stringify(body)}`);
  if (Object.keys(body.error).toSorted().join() !== 'code,message,param,type')
    throw new Error(`not an error: ${JSON.stringify(body)}`);
  return body.error;
}
