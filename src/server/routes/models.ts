/** `GET /v1/models` and `GET /v1/models/{id}`. */
import type { Hono } from 'hono';
import type { EngineInfo } from '../../engine/engine.ts';
import type { AppEnv } from '../app-env.ts';
import { checkModel, type GenerationService } from '../generation-service.ts';

/** Registers both routes. */
export function addModelRoutes(app: Hono<AppEnv>, service: GenerationService): void {
  app.get('/v1/models', (context) => context.json({ object: 'list', data: [modelCard(service.readyEngine().info)] }));
  // A model's name may hold slashes.
  app.get('/v1/models/:id{.+}', (context) => {
    const { info } = service.readyEngine();
    checkModel(context.req.param('id'), info);
    return context.json(modelCard(info));
  });
}

function modelCard(info: EngineInfo) {
  return {
    id: info.model,
    object: 'model',
    created: info.created,
    owned_by: 'blockdraft',
    max_model_len: info.maxContext,
  };
}
