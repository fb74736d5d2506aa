/** Routes between text and tokens, without running the model: tokenize, detokenize, and what a prompt is rendered to. */
import type { Hono } from 'hono';
import type { Engine } from '../../engine/engine.ts';
import type { EncodedPrompt } from '../answer-format.ts';
import type { AppEnv } from '../app-env.ts';
import { checkModel, GENERATION_PATHS, type GenerationService } from '../generation-service.ts';
import { checkTextLength } from '../prompt-text.ts';
import { readJsonBody } from '../read-json-body.ts';
import { isPlainObject } from '../schemas/bounded.ts';
import { parseRequest } from '../schemas/parse-request.ts';
import { DETOKENIZE_BODY, RETURN_TOKEN_STRS, TOKENIZE_TEXT_BODY } from '../schemas/text-requests.ts';
import { checkTokenRange } from '../schemas/token-range.ts';

export interface TextRouteOptions {
  readonly service: GenerationService;
  readonly maxBodyBytes: number;
}

/** The paths that render what their generation paths would answer. */
export const RENDER_PATHS = Object.fromEntries(
  Object.entries(GENERATION_PATHS).map(([path, kind]) => [`${path}/render`, kind] as const),
);

/** Registers the routes. */
export function addTextRoutes(app: Hono<AppEnv>, { service, maxBodyBytes }: TextRouteOptions): void {
  app.post('/tokenize', async (context) => {
    const engine = service.readyEngine();
    const body = await readJsonBody(context.req.raw, maxBodyBytes);
    const { prompt, withSpellings } = await tokenize(service, engine, body);
    return context.json({
      count: prompt.tokens.length,
      max_model_len: engine.info.maxContext,
      tokens: prompt.tokens,
      token_strs: withSpellings ? prompt.tokens.map((token) => engine.text.tokenSpelling(token)) : null,
    });
  });
  app.post('/detokenize', async (context) => {
    const engine = service.readyEngine();
    const { model, tokens } = parseRequest(DETOKENIZE_BODY, await readJsonBody(context.req.raw, maxBodyBytes));
    checkModel(model ?? null, engine.info);
    checkTokenRange('tokens', tokens, engine.info);
    return context.json({ prompt: engine.text.decode(tokens, { skipSpecialTokens: false }) });
  });
  for (const [path, kind] of Object.entries(RENDER_PATHS)) {
    app.post(path, async (context) => {
      const { info } = service.readyEngine();
      const prompts = await service.render(kind, await readJsonBody(context.req.raw, maxBodyBytes));
      return context.json({
        object: 'list',
        model: info.model,
        max_model_len: info.maxContext,
        data: prompts.map(({ text, tokens }) => ({ object: 'prompt', text, token_ids: tokens, count: tokens.length })),
      });
    });
  }
}

/** A body with messages is that of a chat, with one more field. */
async function tokenize(
  service: GenerationService,
  engine: Engine,
  body: unknown,
): Promise<{ readonly prompt: EncodedPrompt; readonly withSpellings: boolean }> {
  if (isPlainObject(body) && 'messages' in body) {
    const { return_token_strs: withSpellings, ...chat } = body;
    const fields = parseRequest(RETURN_TOKEN_STRS, { return_token_strs: withSpellings });
    const [prompt] = await service.render('chat', chat);
    return { prompt: prompt!, withSpellings: fields.return_token_strs ?? false };
  }
  const fields = parseRequest(TOKENIZE_TEXT_BODY, body);
  checkModel(fields.model ?? null, engine.info);
  checkTextLength([fields.prompt], engine.info, 'prompt');
  const tokens = await engine.text.encodePrompt(fields.prompt, { addSpecialTokens: fields.add_special_tokens ?? true });
  return { prompt: { text: fields.prompt, tokens }, withSpellings: fields.return_token_strs ?? false };
}
