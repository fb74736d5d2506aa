/** A hub on this machine: one repository, whose large files lie on another server, as those of the real one do. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export const COMMIT = '0123456789abcdef0123456789abcdef01234567';

export interface FakeHubOptions {
  readonly files: Readonly<Record<string, Buffer>>;
  /** Names of files that are stored apart, with a SHA-256. */
  readonly large?: readonly string[];
  readonly token?: string;
  /** Entries of one page of the list of files. */
  readonly pageSize?: number;
  /** False: every answer begins at byte 0. */
  readonly ranges?: boolean;
  /** Whole bytes after which a connection breaks, one after the other; then none does. */
  readonly breaksAfter?: number[];
  /** Sends this in place of the content. */
  readonly forged?: Readonly<Record<string, Buffer>>;
  /** Names of the list that are not in `files`. */
  readonly listed?: readonly string[];
  /** Where the second page is said to be. */
  readonly nextPageAt?: string;
}

export interface SeenRequest {
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

export class FakeHub {
  readonly seen: SeenRequest[] = [];
  /** Of the server with the large files. */
  readonly seenByStore: SeenRequest[] = [];
  endpoint = '';
  store = '';
  readonly #options: FakeHubOptions;

  private constructor(options: FakeHubOptions) {
    this.#options = options;
  }

  /** Closed after the test. */
  static async open(options: FakeHubOptions): Promise<FakeHub> {
    const hub = new FakeHub(options);
    hub.endpoint = await listen((request, response) => hub.#answer(request, response));
    hub.store = await listen((request, response) => {
      hub.seenByStore.push(seen(request));
      hub.#content(request.url!.slice(1), request, response);
    });
    return hub;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.seen.push(seen(request));
    const { token } = this.#options;
    const { pathname, searchParams } = new URL(request.url!, this.endpoint);
    const [, name = ''] = new RegExp(`^/some/model/resolve/${COMMIT}/(.+)$`).exec(pathname) ?? [];
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) send(response, 401, '{}');
    else if (/^\/api\/models\/some\/model\/revision\/(main|v1\.0)$/.test(pathname)) {
      send(response, 200, JSON.stringify({ id: 'some/model', sha: COMMIT }));
    } else if (pathname === `/api/models/some/model/tree/${COMMIT}`) {
      this.#list(Number(searchParams.get('page') ?? 0), response);
    } else if (this.#options.files[name] === undefined) send(response, 404, '{}');
    else if (this.#options.large?.includes(name)) response.writeHead(302, { location: `${this.store}/${name}` }).end();
    else this.#content(name, request, response);
  }

  #list(page: number, response: ServerResponse): void {
    const { files, large = [], pageSize = 100, listed = [], nextPageAt } = this.#options;
    const entries = [
      { type: 'directory', path: 'onnx', size: 0, oid: 'f00d' },
      ...Object.entries(files).map(([path, data]) => ({
        type: 'file',
        path,
        ...(large.includes(path)
          ? { size: data.length, oid: 'beef', lfs: { oid: sha256(data), size: data.length, pointerSize: 134 } }
          : { size: data.length, oid: gitBlob(data) }),
      })),
      ...listed.map((path) => ({ type: 'file', path, size: 3, oid: gitBlob(Buffer.from('abc')) })),
    ];
    const next = (page + 1) * pageSize;
    const url = nextPageAt ?? `${this.endpoint}/api/models/some/model/tree/${COMMIT}?page=${page + 1}`;
    if (next < entries.length) response.setHeader('link', `<${url}>; rel="next"`);
    send(response, 200, JSON.stringify(entries.slice(page * pageSize, next)));
  }

  #content(name: string, request: IncomingMessage, response: ServerResponse): void {
    const { files, forged, ranges = true, breaksAfter = [] } = this.#options;
    const data = forged?.[name] ?? files[name]!;
    const [, from] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? [];
    const start = ranges && from !== undefined ? Number(from) : 0;
    const body = data.subarray(start);
    const range = `bytes ${start}-${data.length - 1}/${data.length}`;
    response.writeHead(start > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(start > 0 ? { 'content-range': range } : {}),
    });
    const limit = breaksAfter.shift();
    if (limit === undefined || limit >= body.length) response.end(body);
    else response.write(body.subarray(0, limit), () => setTimeout(() => response.destroy(), 20));
  }
}

function seen(request: IncomingMessage): SeenRequest {
  const { range, authorization } = request.headers;
  return { path: request.url!, range, authorization };
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function sha256(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

export function gitBlob(data: Buffer): string {
  return createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex');
}
