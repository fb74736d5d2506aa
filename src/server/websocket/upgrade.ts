/** The WebSocket side of the server's port: which upgrades are taken, and the connections that came of them. */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { AppError } from '../../core/app-error.ts';
import type { EngineStatus } from '../../engine/engine.ts';
import type { ApiKeyCheck, Caller } from '../api-keys.ts';
import { CLOSE_CODE, type ErrorReply } from '../error-response.ts';
import type { ReportFailure } from '../failure-report.ts';
import { GENERATION_PATHS, type GenerationKind, unavailable } from '../generation-service.ts';
import { HttpError } from '../http-error.ts';
import type { OriginCheck } from '../origin-check.ts';
import { requestIdFromHeader } from '../request-id.ts';
import type { ServerConfig } from '../server-config.ts';
import { type ConnectionOptions, refuseConnection, WebSocketConnection } from './connection.ts';

export interface UpgradeOptions extends Omit<ConnectionOptions, 'kind' | 'path' | 'limits' | 'caller' | 'traceHeaders'> {
  readonly status: () => EngineStatus;
  readonly config: ServerConfig;
  readonly checkKey: ApiKeyCheck;
  readonly checkOrigin: OriginCheck;
  readonly reportFailure: ReportFailure;
}

/** The open connections. */
export interface WebSocketEndpoint {
  /** Each connection closes when its last answer has ended. */
  drain(): void;
  /** Cuts what is left. */
  terminate(): void;
}

/** A refused connection has this long to answer the close frame. */
const REFUSED_CLOSE_MS = 1000;

/** Takes the upgrade requests of the server. */
export function attachWebSocket(server: Server, options: UpgradeOptions): WebSocketEndpoint {
  const { config, reportFailure } = options;
  const connections = new Map<WebSocket, WebSocketConnection>();
  const requestIds = new WeakMap<IncomingMessage, string>();
  let isDraining = false;
  // Compression costs memory per connection and gains little on frames of a few tokens.
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: config.limits.maxBodyBytes });

  const most = config.webSocket.maxConnections;
  // One key must not take the connections of the others; without several, there are no others to tell apart.
  const mostOfCaller = config.apiKeys.length > 1 ? config.webSocket.maxConnectionsPerKey : Number.POSITIVE_INFINITY;
  const connectionsOf = (caller: Caller) =>
    [...connections.values()].filter((connection) => connection.caller === caller).length;

  const accept = (socket: WebSocket, request: IncomingMessage, kind: GenerationKind, path: string): void => {
    // A broken frame closes the connection by itself; without a listener it would end the process.
    socket.on('error', () => undefined);
    const status = options.status();
    const requestId = requestIds.get(request)!;
    const refuse = (error: AppError, closeCode?: number): void => {
      reportFailure(error, requestId);
      refuseConnection(socket, error, requestId, closeCode);
      const timer = setTimeout(() => socket.terminate(), REFUSED_CLOSE_MS);
      socket.once('close', () => clearTimeout(timer));
    };
    let caller: Caller;
    try {
      caller = options.checkKey(request.headers.authorization);
    } catch (error) {
      refuse(error as AppError);
      return;
    }
    if (isDraining || status.state === 'draining') {
      refuse(
        new AppError('unavailable', 'Expected a running server, got one that is shutting down. Try another one.'),
        CLOSE_CODE.goingAway,
      );
    } else if (status.state !== 'ready') {
      refuse(unavailable(status));
    } else if (connections.size >= most || connectionsOf(caller) >= mostOfCaller) {
      const limit = Math.min(most, connectionsOf(caller) >= mostOfCaller ? mostOfCaller : most);
      refuse(new AppError('overloaded', `Expected at most ${limit} connections, got one more. Try later.`));
    } else {
      const traceHeaders = { traceparent: header(request, 'traceparent'), tracestate: header(request, 'tracestate') };
      connections.set(
        socket,
        new WebSocketConnection(socket, { ...options, kind, path, caller, limits: config.webSocket, traceHeaders }),
      );
      socket.once('close', () => connections.delete(socket));
    }
  };

  webSockets.on('headers', (headers, request) => headers.push(`x-request-id: ${requestIds.get(request)!}`));
  webSockets.on('wsClientError', (error, socket, request) => {
    const message = `Expected a WebSocket handshake of version 13, got: ${error.message}. Use a WebSocket client.`;
    rejectUpgrade(
      socket,
      reportFailure(new HttpError(400, message, { cause: error }), requestIds.get(request)!),
      requestIds.get(request)!,
    );
  });

  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => undefined);
    const requestId = requestIdFromHeader(header(request, 'x-request-id'));
    requestIds.set(request, requestId);
    try {
      const path = checkHandshake(request, options.checkOrigin);
      const kind = GENERATION_PATHS[path];
      webSockets.handleUpgrade(request, socket, head, (webSocket) => accept(webSocket, request, kind, path));
    } catch (error) {
      rejectUpgrade(socket, reportFailure(error, requestId), requestId);
    }
  });

  return {
    drain() {
      isDraining = true;
      for (const connection of connections.values()) connection.drain();
    },
    terminate() {
      for (const socket of connections.keys()) socket.terminate();
    },
  };
}

/** @throws HttpError for an upgrade that must not happen. */
function checkHandshake(request: IncomingMessage, checkOrigin: OriginCheck): keyof typeof GENERATION_PATHS {
  const path = (request.url ?? '').split('?', 1)[0]!;
  if (!isGenerationPath(path)) {
    throw new HttpError(404, `Expected ${Object.keys(GENERATION_PATHS).join(' or ')}, got ${path}. Connect to one of these.`, {
      details: { code: 'not_found' },
    });
  }
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
    throw new HttpError(400, `Expected an upgrade to websocket, got ${request.headers.upgrade}. Send the request without it.`);
  }
  const { origin } = request.headers;
  if (!checkOrigin(origin)) {
    throw new HttpError(403, `Expected a page of an allowed origin, got ${origin}. Add it to the allowed origins.`, {
      details: { code: 'origin_not_allowed' },
    });
  }
  return path;
}

function isGenerationPath(path: string): path is keyof typeof GENERATION_PATHS {
  return Object.hasOwn(GENERATION_PATHS, path);
}

function header(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** An HTTP answer by hand: an upgrade request has no response object. */
export function rejectUpgrade(socket: Duplex, reply: ErrorReply, requestId: string): void {
  const body = JSON.stringify(reply.body);
  const headers = {
    ...reply.headers,
    'x-request-id': requestId,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  // The other end may never close its half.
  socket.once('finish', () => socket.destroy());
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
}
