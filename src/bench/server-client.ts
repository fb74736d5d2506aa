/** The server that is measured, over HTTP: any with OpenAI's API, and more of it where it lists drafters. */
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';

const modelsSchema = z.looseObject({
  data: z.array(z.looseObject({ id: z.string(), max_model_len: z.number().optional() })).min(1),
});
const draftersSchema = z.looseObject({
  data: z.array(
    z.looseObject({
      name: z.string(),
      kind: z.string(),
      max_draft_tokens: z.number(),
      length_policy: z.string(),
      default: z.boolean(),
    }),
  ),
});

export interface ServedDrafter {
  readonly name: string;
  readonly kind: string;
  readonly max_draft_tokens: number;
  /** `fixed`, or chosen by what pays. */
  readonly length_policy: string;
  readonly default: boolean;
}

export interface ServerFacts {
  readonly url: string;
  readonly model: string;
  readonly max_model_len: number | null;
  readonly version: string | null;
  /** Null where the server does not list any; its requests cannot choose one. */
  readonly drafters: readonly ServedDrafter[] | null;
}

export class ServerClient {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, apiKey: string | null) {
    this.#url = url.replace(/\/+$/, '');
    this.#headers = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  }

  /** @throws AppError `unavailable` where no server answers */
  async facts(model: string | null): Promise<ServerFacts> {
    const models = modelsSchema.safeParse(await this.#get('/v1/models', true));
    if (!models.success) {
      throw new AppError('unavailable', `Expected a list of models from ${this.#url}/v1/models, got something else`);
    }
    const served = model === null ? models.data.data[0] : models.data.data.find(({ id }) => id === model);
    if (served === undefined) {
      const names = models.data.data.map(({ id }) => id).join(', ');
      throw new AppError(
        'model_not_found',
        `Expected a model that the server has (${names}), got ${model}; choose with --model`,
      );
    }
    const drafters = draftersSchema.safeParse(await this.#get('/v1/drafters', false));
    const version = z.looseObject({ version: z.string() }).safeParse(await this.#get('/version', false));
    return {
      url: this.#url,
      model: served.id,
      max_model_len: served.max_model_len ?? null,
      version: version.success ? version.data.version : null,
      drafters: drafters.success
        ? drafters.data.data.map(({ name, kind, max_draft_tokens, length_policy, default: isDefault }) => ({
            name,
            kind,
            max_draft_tokens,
            length_policy,
            default: isDefault,
          }))
        : null,
    };
  }

  /** Of a streamed chat, which ends with its usage. */
  chat(body: object, signal: AbortSignal): Promise<Response> {
    return fetch(`${this.#url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.#headers },
      body: JSON.stringify({ stream_options: { include_usage: true }, ...body, stream: true }),
      signal,
    });
  }

  async #get(path: string, isRequired: boolean): Promise<unknown> {
    let response: Response;
    try {
      response = await fetch(this.#url + path, { headers: this.#headers, signal: AbortSignal.timeout(10_000) });
    } catch (cause) {
      throw new AppError('unavailable', `Expected a server at ${this.#url}, got none: start one, or give --base-url`, {
        cause,
      });
    }
    if (response.ok) return response.json();
    const words = await response.text();
    if (!isRequired) return null;
    throw new AppError(
      'unavailable',
      `Expected an answer from ${this.#url}${path}, got ${response.status} ${words.slice(0, 200)}`,
    );
  }
}
