/** Routes between text and tokens, without running the model: tokenize, detokenize, and what a prompt is rendered to. */
import type { Context, Hono } from 'hono';
import type { Engine } from '../../engine/engine.ts';
import type { EncodedPrompt } from '../answer-format.ts';
import type { AppEnv } from '../app-env.ts';
import { checkModel, GENERATION_PATHS, type GenerationService } from '../generation-service.ts';
import { checkTextLength } from '../prompt-text.ts';
import { readJsonBody } from '../read-json-body.ts';
import { type RequestTurns, whileWaitedFor } from '../request-turns.ts';
import { isPlainObject } from '../schemas/bounded.ts';
import { parseRequest } from '../schemas/parse-request.ts';
import { DETOKENIZE_BODY, RETURN_TOKEN_STRS, TOKENIZE_TEXT_BODY } from '../schemas/text-requests.ts';
import { checkTokenRange } from '../schemas/token-range.ts';

export interface TextRouteOptions {
  readonly service: GenerationService;
  readonly turns: RequestTurns;
  readonly maxBodyBytes: number;
}

/** The paths that render what their generation paths would answer. */
export const RENDER_PATHS = Object.fromEntries(
  Object.entries(GENERATION_PATHS).map(([path, kind]) => [`${path}/render`, kind] as const),
);

/** Registers the routes. */
export function addTextRoutes(app: Hono<AppEnv>, { service, turns, maxBodyBytes }: TextRouteOptions): void {
  /** Encoding a text is work, of which a caller may ask as little as of answers. */
  const answer = async (
    context: Context<AppEnv>,
    work: (engine: Engine, body: unknown, signal: AbortSignal) => Promise<object>,
  ): Promise<Response> => {
    const engine = service.readyEngine();
    using turn = turns.begin(context.get('caller'), context.req.raw.signal);
    const { signal } = turn;
    return await whileWaitedFor(signal, async () =>
      context.json(await work(engine, await readJsonBody(context.req.raw, maxBodyBytes, signal), signal)),
    );
  };
  app.post('/tokenize', (context) =>
    answer(context, async (engine, body, signal) => {
      const { prompt, withSpellings } = await tokenize(service, engine, body, signal);
      return {
        count: prompt.tokens.length,
        max_model_len: engine.info.maxContext,
        tokens: prompt.tokens,
        token_strs: withSpellings ? prompt.tokens.map((token) => engine.text.tokenSpelling(token)) : null,
      };
    }),
  );
  app.post('/detokenize', (context) =>
    answer(context, async ({ info, text }, body) => {
      const { model, tokens } = parseRequest(DETOKENIZE_BODY, body);
      checkModel(model ?? null, info);
      checkTokenRange('tokens', tokens, info);
      return { prompt: text.decode(tokens, { skipSpecialTokens: false }) };
    }),
  );
  for (const [path, kind] of Object.entries(RENDER_PATHS)) {
    app.post(path, (context) =>
      answer(context, async ({ info }, body, signal) => {
        const prompts = await service.render(kind, body, signal);
        return {
          object: 'list',
          model: info.model,
          max_model_len: info.maxContext,
          data: prompts.map(({ text, tokens }) => ({ object: 'prompt', text, token_ids: tokens, count: tokens.length })),
        };
      }),
    );
  }
}

/** A body with messages is that of a chat, with one more field. */
async function tokenize(
  service: GenerationService,
  engine: Engine,
  body: unknown,
  signal: AbortSignal,
): Promise<{ readonly prompt: EncodedPrompt; readonly withSpellings: boolean }> {
  if (isPlainObject(body) && 'messages' in body) {
    const { return_token_strs: withSpellings, ...chat } = body;
    const fields = parseRequest(RETURN_TOKEN_STRS, { return_token_strs: withSpellings });
    const [prompt] = await service.render('chat', chat, signal);
    return { prompt: prompt!, withSpellings: fields.return_token_strs ?? false };
  }
  const fields = parseRequest(TOKENIZE_TEXT_BODY, body);
  checkModel(fields.model ?? null, engine.info);
  checkTextLength([fields.prompt], engine.info, 'prompt');
  const addSpecialTokens = fields.add_special_tokens ?? true;
  const [tokens] = await engine.text.encodeAll([fields.prompt], { addSpecialTokens }, signal);
  return { prompt: { text: fields.prompt, tokens: tokens! }, withSpellings: fields.return_token_strs ?? false };
}
