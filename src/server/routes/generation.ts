/** `POST /v1/completions` and `POST /v1/chat/completions`. */
import type { Context, Hono } from 'hono';
import type { AppEnv } from '../app-env.ts';
import type { ConcurrencyLimit } from '../concurrency-limit.ts';
import type { ReportFailure } from '../failure-report.ts';
import { GENERATION_PATHS, type GenerationKind, type GenerationService } from '../generation-service.ts';
import { readJsonBody } from '../read-json-body.ts';
import { sseResponse } from '../sse.ts';

export interface GenerationRouteOptions {
  readonly service: GenerationService;
  readonly concurrency: ConcurrencyLimit;
  readonly maxBodyBytes: number;
  readonly reportFailure: ReportFailure;
}

/** Registers both routes. */
export function addGenerationRoutes(app: Hono<AppEnv>, options: GenerationRouteOptions): void {
  for (const [path, kind] of Object.entries(GENERATION_PATHS)) {
    app.post(path, (context) => answer(context, kind, options));
  }
}

async function answer(context: Context<AppEnv>, kind: GenerationKind, options: GenerationRouteOptions): Promise<Response> {
  // A body is read only for a server that could answer it, and for a caller who may ask.
  options.service.readyEngine();
  const leave = options.concurrency.enter(context.get('caller'));
  let isStreamed = false;
  try {
    const response = await respond(context, kind, options, leave);
    isStreamed = context.get('access').isStreamed;
    return response;
  } finally {
    if (!isStreamed) leave();
  }
}

/** @param onEnd called when a stream has ended, if there is one */
async function respond(
  context: Context<AppEnv>,
  kind: GenerationKind,
  { service, maxBodyBytes, reportFailure }: GenerationRouteOptions,
  onEnd: () => void,
): Promise<Response> {
  const requestId = context.get('requestId');
  const access = context.get('access');
  const { signal } = context.req.raw;
  const plan = await service.plan(kind, await readJsonBody(context.req.raw, maxBodyBytes), requestId, signal);
  const { params } = plan;
  if (!params.stream) return Response.json(await service.whole(plan, access.record, signal));
  const gone = new AbortController();
  const chunks = await service.stream(plan, access.record, AbortSignal.any([signal, gone.signal]));
  access.isStreamed = true;
  let errorCode: string | undefined;
  return sseResponse(chunks, {
    onCancel() {
      errorCode = 'aborted';
      gone.abort();
    },
    onError: (error) => {
      const reply = reportFailure(error, requestId, access.logger);
      errorCode = reply.body.error.code;
      return reply.body;
    },
    onEnd() {
      access.write(200, errorCode);
      onEnd();
    },
  });
}
