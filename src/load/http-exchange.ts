/** One HTTP request with the times of its phases, as load tests measure them. */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { HttpCall, HttpResult } from './vu/protocol.ts';

/** Error codes as k6 documents them. */
const CODES = { general: 1000, dns: 1100, refused: 1212, reset: 1220, dial: 1210, timeout: 1050, tls: 1300 } as const;

export interface HttpAgents extends Disposable {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/** Connections that are kept for the next request. */
export function httpAgents(keepAlive: boolean): HttpAgents {
  const http = new HttpAgent({ keepAlive, maxSockets: Number.POSITIVE_INFINITY });
  const https = new HttpsAgent({ keepAlive, maxSockets: Number.POSITIVE_INFINITY });
  return {
    http,
    https,
    [Symbol.dispose]() {
      http.destroy();
      https.destroy();
    },
  };
}

/** Never rejects: what went wrong is part of the result. Redirects are not followed. */
export function exchange(call: HttpCall, agents: HttpAgents): Promise<HttpResult> {
  return new Promise((resolve) => {
    const clock = new PhaseClock();
    const body = call.body === null ? null : typeof call.body === 'string' ? Buffer.from(call.body) : Buffer.from(call.body);
    const chunks: Buffer[] = [];
    let received = 0;
    let response: IncomingMessage | null = null;
    let request: ClientRequest | null = null;
    const finish = (error: Error | null) => {
      clearTimeout(timer);
      const bytes = Buffer.concat(chunks);
      resolve({
        status: error === null ? (response?.statusCode ?? 0) : 0,
        statusText: response === null ? '' : `${response.statusCode} ${response.statusMessage}`,
        headers: flatHeaders(response),
        body: call.wantsBody === 'none' ? null : call.wantsBody === 'text' ? bytes.toString() : exact(bytes),
        error: error === null ? '' : wordsOf(error),
        errorCode: error === null ? statusCode(response?.statusCode ?? 0) : codeOf(error),
        remoteIp: request?.socket?.remoteAddress ?? '',
        remotePort: request?.socket?.remotePort ?? 0,
        protocol: `HTTP/${response?.httpVersion ?? '1.1'}`,
        timings: clock.timings(),
        bytesSent: body?.byteLength ?? 0,
        bytesReceived: received,
      });
    };
    const timer = setTimeout(() => request?.destroy(new RequestTimeout()), call.timeoutMs);
    try {
      const isSecure = new URL(call.url).protocol === 'https:';
      request = (isSecure ? requestHttps : requestHttp)(call.url, {
        method: call.method,
        headers: { ...call.headers, ...(body === null ? {} : { 'content-length': String(body.byteLength) }) },
        agent: isSecure ? agents.https : agents.http,
      });
    } catch (error) {
      finish(error as Error);
      return;
    }
    clock.watch(request);
    request.once('error', finish);
    request.once('response', (incoming) => {
      response = incoming;
      incoming.on('data', (chunk: Buffer) => {
        received += chunk.byteLength;
        if (call.wantsBody !== 'none') chunks.push(chunk);
      });
      incoming.once('end', () => {
        clock.end();
        finish(null);
      });
      incoming.once('error', finish);
    });
    request.end(body ?? undefined);
  });
}

class RequestTimeout extends Error {}

/** The moments of a request. A phase that did not take place took no time. */
class PhaseClock {
  readonly #begun = performance.now();
  #socketAt: number | null = null;
  #connectedAt: number | null = null;
  #securedAt: number | null = null;
  #sentAt: number | null = null;
  #firstByteAt: number | null = null;
  #endedAt: number | null = null;
  #isNewSocket = false;

  watch(request: ClientRequest): void {
    const now = () => performance.now();
    request.once('socket', (socket) => {
      this.#socketAt = now();
      if (!socket.connecting) return;
      this.#isNewSocket = true;
      socket.once('connect', () => {
        this.#connectedAt = now();
      });
      socket.once('secureConnect', () => {
        this.#securedAt = now();
      });
    });
    request.once('finish', () => {
      this.#sentAt = now();
    });
    request.once('response', () => {
      this.#firstByteAt = now();
    });
  }

  end(): void {
    this.#endedAt = performance.now();
  }

  timings() {
    const socket = this.#socketAt ?? this.#begun;
    const connected = this.#isNewSocket ? (this.#connectedAt ?? socket) : socket;
    const ready = this.#securedAt ?? connected;
    const end = this.#endedAt ?? performance.now();
    // Small bodies count as sent before the socket is connected.
    const sent = Math.min(Math.max(this.#sentAt ?? ready, ready), end);
    const firstByte = Math.min(Math.max(this.#firstByteAt ?? end, sent), end);
    return {
      blocked: socket - this.#begun,
      connecting: connected - socket,
      tls_handshaking: ready - connected,
      sending: sent - ready,
      waiting: firstByte - sent,
      receiving: end - firstByte,
      duration: end - ready,
    };
  }
}

function flatHeaders(response: IncomingMessage | null): Record<string, string> {
  const entries = Object.entries(response?.headers ?? {}).map(([name, value]): [string, string] => [
    name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()),
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ]);
  return Object.fromEntries(entries);
}

function exact(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function wordsOf(error: Error): string {
  return error instanceof RequestTimeout ? 'request timeout' : error.message;
}

function codeOf(error: Error): number {
  if (error instanceof RequestTimeout) return CODES.timeout;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return CODES.dns;
  if (code === 'ECONNREFUSED') return CODES.refused;
  if (code === 'ECONNRESET' || code === 'EPIPE') return CODES.reset;
  if (code === 'ETIMEDOUT' || code === 'EHOSTUNREACH') return CODES.dial;
  return code.startsWith('ERR_TLS') || code.includes('CERT') ? CODES.tls : CODES.general;
}

/** Answers that are errors have 1000 and their status. */
function statusCode(status: number): number {
  return status >= 400 ? 1000 + status : 0;
}
