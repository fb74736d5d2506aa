/** The HTTP routes as one Hono application; it knows no socket. */
import { type Context, Hono } from 'hono';
import { cors } from 'hono/cors';
import type { EngineStatus } from '../engine/engine.ts';
import { AccessEntry } from './access-log.ts';
import { createApiKeyCheck } from './api-keys.ts';
import type { AppEnv } from './app-env.ts';
import { randomSeed } from './choice-seed.ts';
import { type Clock, systemClock } from './clock.ts';
import { type ErrorReply, errorReply } from './error-response.ts';
import { createFailureReport } from './failure-report.ts';
import { GENERATION_PATHS, GenerationService } from './generation-service.ts';
import type { HostCheck } from './host-check.ts';
import { HttpError } from './http-error.ts';
import type { Logger } from './logger.ts';
import type { ServerMetrics } from './metrics.ts';
import { requestIdFromHeader } from './request-id.ts';
import type { RequestTracer } from './request-tracer.ts';
import { RequestTurns } from './request-turns.ts';
import { addDescriptionRoutes, DESCRIPTION_PATHS } from './routes/api-description.ts';
import { addDrafterRoutes } from './routes/drafters.ts';
import { addGenerationRoutes } from './routes/generation.ts';
import { addModelRoutes } from './routes/models.ts';
import { addOperationRoutes, OPEN_PATHS } from './routes/operations.ts';
import { addServerInfoRoutes, SERVER_INFO_PATHS } from './routes/server-info.ts';
import { addTextRoutes, RENDER_PATHS } from './routes/text.ts';
import { addValidationRoutes } from './routes/validation.ts';
import type { ServerConfig } from './server-config.ts';
import type { ValidationJobs } from './validation/validation-jobs.ts';

export interface AppOptions {
  /** Read at every request: the engine may still be loading, and will drain. */
  readonly status: () => EngineStatus;
  readonly config: ServerConfig;
  /** Must also be the observer of the engine. */
  readonly metrics: ServerMetrics;
  readonly logger: Logger;
  /** Follows the requests for answers. Default: nobody does. */
  readonly tracer?: RequestTracer | null;
  readonly version: string;
  /** Names that the server answers to. Default: all. */
  readonly checkHost?: HostCheck;
  /** Shared with whatever else takes requests. Default: one for these routes alone. */
  readonly turns?: RequestTurns;
  /** What measures drafters, for callers with a key; never without keys. Default: nothing. */
  readonly validation?: ValidationJobs | null;
  /** What the server was started with, by option, for who may ask; nothing secret. Default: nothing. */
  readonly serverArguments?: Readonly<Record<string, unknown>>;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Seed of a request that brings none. Default: random. */
  readonly randomSeed?: () => number;
}

/** What machines ask again and again. */
const PROBED_PATHS: ReadonlySet<string> = new Set([...OPEN_PATHS, '/metrics']);

/** Builds the application. */
export function createApp(options: AppOptions): Hono<AppEnv> {
  const { config, logger, metrics, version } = options;
  const clock = options.clock ?? systemClock;
  const service = createGenerationService(options);
  const reportFailure = createFailureReport(logger, metrics);
  const checkKey = createApiKeyCheck(config.apiKeys);
  const app = new Hono<AppEnv>();

  app.use(async (context, next) => {
    const { method, path } = context.req;
    const requestId = requestIdFromHeader(context.req.header('x-request-id'));
    const start = { requestId, transport: 'http', method, path } as const;
    const trace =
      method === 'POST' && Object.hasOwn(GENERATION_PATHS, path)
        ? (options.tracer?.begin(start, {
            traceparent: context.req.header('traceparent'),
            tracestate: context.req.header('tracestate'),
          }) ?? null)
        : null;
    const access = new AccessEntry(start, { logger, clock, trace, isProbe: PROBED_PATHS.has(path) });
    context.set('requestId', requestId);
    context.set('access', access);
    await next();
    context.header('x-request-id', requestId);
    const failure = context.error === undefined ? undefined : errorReply(context.error, requestId).body.error.code;
    if (!access.isStreamed) access.write(context.res.status, failure);
  });
  app.use(async (context, next) => {
    const host = context.req.header('host');
    if (options.checkHost?.(host) === false) {
      const advice = "Use that, add the name's origin to the allowed origins, or set an API key.";
      throw new HttpError(403, `Expected localhost or an address as the host, got ${host}. ${advice}`, {
        details: { code: 'host_not_allowed' },
      });
    }
    await next();
  });
  if (config.corsOrigins.length > 0) {
    app.use(
      cors({ origin: [...config.corsOrigins], allowMethods: ['GET', 'POST', 'DELETE'], exposeHeaders: ['x-request-id'] }),
    );
  }
  app.use(async (context, next) => {
    if (!OPEN_PATHS.has(context.req.path)) context.set('caller', checkKey(context.req.header('authorization')));
    await next();
  });

  const turns = options.turns ?? new RequestTurns(config);
  addGenerationRoutes(app, { service, turns, maxBodyBytes: config.limits.maxBodyBytes, reportFailure });
  addModelRoutes(app, service);
  const allowSwap = config.allowDrafterSwap && config.apiKeys.length > 0;
  addDrafterRoutes(app, { service, allowSwap, maxBodyBytes: config.limits.maxBodyBytes });
  const jobs = config.apiKeys.length > 0 ? (options.validation ?? null) : null;
  addValidationRoutes(app, { service, jobs, maxBodyBytes: config.limits.maxBodyBytes });
  addTextRoutes(app, { service, turns, maxBodyBytes: config.limits.maxBodyBytes });
  addServerInfoRoutes(app, { service, version, serverArguments: options.serverArguments ?? {} });
  addOperationRoutes(app, { service, metrics, version });
  addDescriptionRoutes(app, { version, limits: config.limits });

  for (const path of [...Object.keys(GENERATION_PATHS), ...Object.keys(RENDER_PATHS), '/tokenize', '/detokenize']) {
    app.all(path, refuseMethod('POST'));
  }
  app.all('/v1/drafters/jobs/:id', refuseMethod('GET, HEAD, DELETE'));
  for (const path of [
    '/v1/drafters/:name/:what{load|validate|diagnose|record}',
    '/v1/drafters/:what{compare|export-hard|watch}',
  ]) {
    app.all(path, refuseMethod('POST'));
  }
  for (const path of [
    '/v1/models',
    '/v1/models/:id{.+}',
    '/v1/drafters',
    '/v1/drafters/jobs',
    '/metrics',
    ...SERVER_INFO_PATHS,
    ...OPEN_PATHS,
    ...DESCRIPTION_PATHS,
    '/version',
  ])
    app.all(path, refuseMethod('GET, HEAD'));
  app.notFound((context) => {
    const { method, path } = context.req;
    const error = new HttpError(404, `Expected a known route, got ${method} ${path}. See docs/http-api.md for the routes.`, {
      details: { code: 'not_found' },
    });
    return toResponse(reportFailure(error, context.get('requestId'), context.get('access').logger));
  });
  app.onError((error, context) => toResponse(reportFailure(error, context.get('requestId'), context.get('access').logger)));
  return app;
}

/** The service of these options; HTTP and WebSocket each make one, which costs two schemas. */
export function createGenerationService(options: AppOptions): GenerationService {
  return new GenerationService({
    status: options.status,
    config: options.config,
    metrics: options.metrics,
    version: options.version,
    clock: options.clock ?? systemClock,
    randomSeed: options.randomSeed ?? randomSeed,
  });
}

function refuseMethod(allow: string): (context: Context) => never {
  return ({ req }) => {
    throw new HttpError(405, `Expected method ${allow}, got ${req.method}. Use ${allow}.`, {
      headers: { allow },
      details: { code: 'method_not_allowed' },
    });
  };
}

function toResponse(reply: ErrorReply): Response {
  return Response.json(reply.body, { status: reply.status, headers: reply.headers });
}
