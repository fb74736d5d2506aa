/** `GET /server_info` and its older name `/get_server_info`: what is in force, and the acceptance length since the start, as SGLang tells them. */
import type { Hono } from 'hono';
import type { Engine } from '../../engine/engine.ts';
import type { AppEnv } from '../app-env.ts';
import type { GenerationService } from '../generation-service.ts';

export const SERVER_INFO_PATHS = ['/server_info', '/get_server_info'] as const;

export interface ServerInfoRouteOptions {
  readonly service: GenerationService;
  readonly version: string;
  /** What the server was started with, by option; nothing secret. */
  readonly serverArguments: Readonly<Record<string, unknown>>;
}

/** Registers both paths. */
export function addServerInfoRoutes(app: Hono<AppEnv>, { service, version, serverArguments }: ServerInfoRouteOptions): void {
  for (const path of SERVER_INFO_PATHS) {
    app.get(path, (context) => {
      const engine = service.readyEngine();
      const { info } = engine;
      const [drafter] = info.drafters;
      const load = engine.load();
      return context.json({
        version,
        served_model_name: info.model,
        context_length: info.maxContext,
        max_running_requests: info.maxSequences,
        speculative_algorithm: drafter?.kind ?? null,
        speculative_num_draft_tokens: drafter?.maxDraftTokens ?? null,
        arguments: serverArguments,
        internal_states: [
          {
            avg_spec_accept_length: acceptanceLength(engine),
            num_running_reqs: load.running,
            num_queue_reqs: load.waiting,
          },
        ],
      });
    });
  }
}

/** 1 + accepted tokens / drafts of all drafters since the start; null before the first draft. */
function acceptanceLength(engine: Engine): number | null {
  const counts = engine.drafterStatus().map((status) => status.counts);
  const drafts = counts.reduce((sum, { numDrafts }) => sum + numDrafts, 0);
  const accepted = counts.reduce((sum, { numAcceptedTokens }) => sum + numAcceptedTokens, 0);
  return drafts === 0 ? null : 1 + accepted / drafts;
}
