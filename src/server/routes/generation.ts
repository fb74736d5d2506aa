/** `POST /v1/completions` and `POST /v1/chat/completions`. */
import type { Context, Hono } from 'hono';
import type { AppEnv } from '../app-env.ts';
import type { ReportFailure } from '../failure-report.ts';
import { GENERATION_PATHS, type GenerationKind, type GenerationService } from '../generation-service.ts';
import { readJsonBody } from '../read-json-body.ts';
import { type RequestTurn, type RequestTurns, whileWaitedFor } from '../request-turns.ts';
import { sseResponse } from '../sse.ts';

export interface GenerationRouteOptions {
  readonly service: GenerationService;
  readonly turns: RequestTurns;
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
  const turn = options.turns.begin(context.get('caller'), context.req.raw.signal);
  try {
    return await respond(context, kind, options, turn);
  } finally {
    if (!context.get('access').isStreamed) turn[Symbol.dispose]();
  }
}

/** @param turn ends with the stream, if there is one */
async function respond(
  context: Context<AppEnv>,
  kind: GenerationKind,
  { service, maxBodyBytes, reportFailure }: GenerationRouteOptions,
  turn: RequestTurn,
): Promise<Response> {
  const requestId = context.get('requestId');
  const access = context.get('access');
  const { signal } = turn;
  const plan = await whileWaitedFor(signal, async () =>
    service.plan(kind, await readJsonBody(context.req.raw, maxBodyBytes, signal), requestId, signal),
  );
  if (!plan.params.stream) return Response.json(await service.whole(plan, access.record, signal));
  const chunks = await service.stream(plan, access.record, signal);
  access.isStreamed = true;
  let errorCode: string | undefined;
  return sseResponse(chunks, {
    onCancel() {
      errorCode = 'aborted';
      turn.abandon();
    },
    onError: (error) => {
      const reply = reportFailure(error, requestId, access.logger);
      errorCode = reply.body.error.code;
      return reply.body;
    },
    onEnd() {
      access.write(200, errorCode);
      turn[Symbol.dispose]();
    },
  });
}
