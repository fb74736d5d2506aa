/** Whether a server is here, ready, and which: `/health`, `/ready`, `/ping`, `/live`, `/version`; and what it counts: `/metrics`. */
import type { Hono } from 'hono';
import type { AppEnv } from '../app-env.ts';
import type { GenerationService } from '../generation-service.ts';
import type { ServerMetrics } from '../metrics.ts';

/** Routes that say whether requests are taken. */
const READINESS_PATHS = ['/health', '/ready', '/ping'];

/** Routes that must answer whoever asks, as probes have no key: they tell nothing but whether a server is here. */
export const OPEN_PATHS: ReadonlySet<string> = new Set([...READINESS_PATHS, '/live']);

export interface OperationRouteOptions {
  readonly service: GenerationService;
  readonly metrics: ServerMetrics;
  readonly version: string;
}

/** Registers the routes. */
export function addOperationRoutes(app: Hono<AppEnv>, options: OperationRouteOptions): void {
  for (const path of READINESS_PATHS) {
    app.get(path, (context) => {
      options.service.readyEngine();
      return context.json({ status: 'ok' });
    });
  }
  // Also while the model loads and after it failed to: who restarts what is not alive would only begin again.
  app.get('/live', (context) => context.json({ status: 'ok' }));
  app.get('/version', (context) => context.json({ version: options.version }));
  app.get('/metrics', async (context) =>
    context.body(await options.metrics.render(), 200, { 'content-type': options.metrics.contentType }),
  );
}
