/**
 * The part of the Hugging Face hub's HTTP interface that fetching a model needs: the commit of a revision, the files of
 * a commit, and a file from a byte on.
 */
import { z } from 'zod';
import { AppError } from '../core/app-error.ts';
import type { HubRepo } from './hub-repo.ts';

export interface HubOptions {
  /** Where the hub is, without a slash at its end. */
  readonly endpoint: string;
  /** Null: as nobody in particular. */
  readonly token: string | null;
}

export interface HubFile {
  readonly path: string;
  readonly bytes: number;
  /** Digest of the content, as git or git-lfs writes it. */
  readonly digest: FileDigest;
}

export interface FileDigest {
  /** `git-blob`: SHA-1 of `blob <bytes>\0` and the content. */
  readonly kind: 'sha256' | 'git-blob';
  /** Hexadecimal. */
  readonly value: string;
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

const revisionSchema = z.looseObject({ sha: z.string().regex(/^[0-9a-f]{40}$/) });
const treeSchema = z.array(
  z.looseObject({
    type: z.string(),
    path: z.string(),
    size: z.number().int().nonnegative(),
    oid: z.string(),
    lfs: z.looseObject({ oid: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().int().nonnegative() }).nullish(),
  }),
);

/**
 * `HF_ENDPOINT` and `HF_TOKEN`, as Hugging Face's own tools read them.
 * @throws AppError `invalid_config` when the endpoint is no URL
 */
export function hubOptionsFromEnv(env: NodeJS.ProcessEnv): HubOptions {
  const endpoint = (env['HF_ENDPOINT'] || DEFAULT_ENDPOINT).replace(/\/+$/, '');
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) {
    throw new AppError(
      'invalid_config',
      `Expected HF_ENDPOINT as a URL of http or https, got ${endpoint}; unset or correct it`,
    );
  }
  return { endpoint, token: env['HF_TOKEN'] || null };
}

export class HubClient {
  readonly #options: HubOptions;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  /**
   * The commit that a revision stands for at this moment.
   * @throws AppError `invalid_config` when there is none or it may not be read, `unavailable` when the hub cannot be reached
   */
  async commitOf(repo: HubRepo, signal?: AbortSignal): Promise<string> {
    const path = `/api/models/${repo.name}/revision/${encodeURIComponent(repo.revision)}`;
    const { body } = await this.#json(repo, path, revisionSchema, signal);
    return body.sha;
  }

  /** The files in the root folder of a commit. */
  async files(repo: HubRepo, commit: string, signal?: AbortSignal): Promise<HubFile[]> {
    const files: HubFile[] = [];
    for (let path: string | null = `/api/models/${repo.name}/tree/${commit}`; path !== null; ) {
      const page: { body: z.infer<typeof treeSchema>; next: string | null } = await this.#json(repo, path, treeSchema, signal);
      for (const { type, path: name, size, oid, lfs } of page.body) {
        if (type !== 'file') continue;
        const digest: FileDigest = lfs ? { kind: 'sha256', value: lfs.oid } : { kind: 'git-blob', value: oid };
        files.push({ path: name, bytes: lfs?.size ?? size, digest });
      }
      path = page.next;
    }
    return files;
  }

  /** The content of a file from a byte on. Status 206 says that it begins there, 200 that it begins at 0. */
  open(repo: HubRepo, commit: string, path: string, fromByte: number, signal?: AbortSignal): Promise<Response> {
    const range: Record<string, string> = fromByte === 0 ? {} : { range: `bytes=${fromByte}-` };
    return this.#fetch(repo, `/${repo.name}/resolve/${commit}/${encodeURIComponent(path)}`, range, signal);
  }

  async #json<T>(repo: HubRepo, path: string, schema: z.ZodType<T>, signal: AbortSignal | undefined) {
    const response = await this.#fetch(repo, path, {}, signal);
    const parsed = schema.safeParse(await response.json().catch(() => undefined));
    if (!parsed.success) {
      throw new AppError(
        'unavailable',
        `Expected the interface of a Hugging Face hub at ${this.#options.endpoint}, got another answer to ${path}; check HF_ENDPOINT`,
        { cause: parsed.error },
      );
    }
    return { body: parsed.data, next: this.#nextPage(response) };
  }

  /** Pages are named by whole URLs; one elsewhere is not followed, as it would be given the token. */
  #nextPage(response: Response): string | null {
    const [, url] = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
    if (url === undefined) return null;
    const { endpoint } = this.#options;
    const next = new URL(url, endpoint);
    if (next.origin === new URL(endpoint).origin) return `${next.pathname}${next.search}`;
    throw new AppError(
      'unavailable',
      `Expected all pages of a list from ${endpoint}, got one at ${next.origin}; check HF_ENDPOINT`,
    );
  }

  async #fetch(
    repo: HubRepo,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const { endpoint, token } = this.#options;
    const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    let response: Response;
    try {
      response = await fetch(`${endpoint}${path}`, {
        headers: { ...headers, ...authorization },
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (cause) {
      if (signal?.aborted) throw new AppError('aborted', 'The download was given up', { cause });
      throw unreachable(endpoint, cause);
    }
    if (response.ok || response.status === 416) return response;
    await response.body?.cancel();
    throw refused(response.status, repo, endpoint, token !== null);
  }
}

/** The error of a connection that failed, however far it came. */
export function unreachable(endpoint: string, cause: unknown): AppError {
  return new AppError(
    'unavailable',
    `Cannot reach ${endpoint} (${connectionCode(cause)}); connect to the network, or set HF_ENDPOINT to a mirror`,
    { cause },
  );
}

function connectionCode(error: unknown): string {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if ('code' in inner && typeof inner.code === 'string') return inner.code;
  }
  return error instanceof Error ? error.message : String(error);
}

function refused(status: number, { name, revision }: HubRepo, endpoint: string, withToken: boolean): AppError {
  switch (status) {
    case 401:
    case 403:
      return new AppError(
        'invalid_config',
        `Expected access to ${name} on ${endpoint}, got HTTP ${status} ${withToken ? 'with the token in HF_TOKEN' : 'without a token'}; ` +
          'check its name, accept its terms there, and set HF_TOKEN',
      );
    case 404:
      return new AppError(
        'invalid_config',
        `Expected the model ${name} at revision ${revision} on ${endpoint}, got HTTP 404; check the name and the revision`,
      );
    default:
      return new AppError(
        'unavailable',
        `Expected an answer about ${name} from ${endpoint}, got HTTP ${status}; try again later`,
      );
  }
}
