/** `GET /health`, `GET /version` and `GET /metrics`. */
import type { Hono } from 'hono';
import type { AppEnv } from '../app-env.ts';
import type { GenerationService } from '../generation-service.ts';
import type { ServerMetrics } from '../metrics.ts';

/** Routes that must answer whoever asks: they tell nothing but whether a server is here, and which. */
export const OPEN_PATHS: ReadonlySet<string> = new Set(['/health', '/version']);

export interface OperationRouteOptions {
  readonly service: GenerationService;
  readonly metrics: ServerMetrics;
  readonly version: string;
}

/** Registers the three routes. */
export function addOperationRoutes(app: Hono<AppEnv>, options: OperationRouteOptions): void {
  app.get('/health', (context) => {
    options.service.readyEngine();
    return context.json({ status: 'ok' });
  });
  app.get('/version', (context) => context.json({ version: options.version }));
  app.get('/metrics', async (context) =>
    context.body(await options.metrics.render(), 200, { 'content-type': options.metrics.contentType }),
  );
}
