/** Binds HTTP and WebSocket to one port. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { AppError } from '../core/app-error.ts';
import { createApiKeyCheck } from './api-keys.ts';
import { type AppOptions, createApp, createGenerationService } from './app.ts';
import { systemClock } from './clock.ts';
import { createFailureReport } from './failure-report.ts';
import { createHostCheck } from './host-check.ts';
import { HttpError } from './http-error.ts';
import { createOriginCheck } from './origin-check.ts';
import { newRequestId } from './request-id.ts';
import { RequestTurns } from './request-turns.ts';
import { cutWhenStalled } from './stalled-response.ts';
import { attachWebSocket, rejectUpgrade } from './websocket/upgrade.ts';

export interface StartServerOptions extends AppOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

export interface RunningServer {
  /** Where a client on this machine reaches it. */
  readonly url: string;
  readonly port: number;
  /** Ends WebSockets as soon as their answers have ended, and still tells whoever asks that the server is not ready. */
  drain(): void;
  /**
   * Takes no more connections, waits for the running answers (no longer than `graceMs`), then cuts the rest.
   * While the server should still tell `/health` that it drains, let `status` say so, call {@link drain}, and close after.
   * @param graceMs default: `config.closeGraceMs`
   */
  close(graceMs?: number): Promise<void>;
}

/** How often a closing server looks for connections that became idle. */
const IDLE_CHECK_MS = 50;

/** @throws AppError `invalid_config` when the address cannot be bound. */
export async function startServer(options: StartServerOptions): Promise<RunningServer> {
  const { config, logger, metrics, host } = options;
  const reportFailure = createFailureReport(logger, metrics);
  const refuseMalformed = (reason: string): Response => {
    const requestId = newRequestId();
    const reply = reportFailure(malformed(400, reason), requestId);
    return Response.json(reply.body, { status: reply.status, headers: { ...reply.headers, 'x-request-id': requestId } });
  };
  const turns = new RequestTurns(config);
  const allowedOrigins = [...config.allowedOrigins, ...config.corsOrigins];
  const checkHost = createHostCheck({ host, apiKeys: config.apiKeys, allowedOrigins });
  const app = createApp({ ...options, turns, checkHost });
  const listener = getRequestListener(
    (request, env) => {
      const { headers, httpVersion } = env.incoming;
      // HTTP/1.0, which simple health checks speak, has no such rule.
      if (headers.host === undefined && httpVersion === '1.1') return refuseMalformed('no host header');
      return app.fetch(request, env);
    },
    { hostname: host, overrideGlobalObjects: false, errorHandler: (error) => refuseMalformed((error as Error).message) },
  );
  // Node's own check of the host header would answer without the envelope.
  const server = createServer({ requireHostHeader: false }, (incoming, outgoing) => {
    cutWhenStalled(outgoing, config.stalledResponseMs, () =>
      logger.warn({ path: incoming.url?.split('?', 1)[0] }, 'response cut'),
    );
    void listener(incoming, outgoing);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const requestId = newRequestId();
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
    rejectUpgrade(socket, reportFailure(malformed(status, error.message), requestId), requestId);
  });
  const port = await listen(server, host, options.port);
  server.on('error', (error) => logger.error({ error }, 'http server failed'));
  const webSockets = attachWebSocket(server, {
    status: options.status,
    config,
    service: createGenerationService(options),
    turns,
    checkKey: createApiKeyCheck(config.apiKeys),
    checkOrigin: createOriginCheck({ host, port, allowedOrigins: config.allowedOrigins }),
    reportFailure,
    logger,
    tracer: options.tracer ?? null,
    clock: options.clock ?? systemClock,
  });
  return {
    url: `http://${reachableHost(host)}:${port}`,
    port,
    drain: () => webSockets.drain(),
    async close(graceMs = config.closeGraceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      webSockets.drain();
      const idleCheck = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
      const cut = setTimeout(() => {
        server.closeAllConnections();
        webSockets.terminate();
      }, graceMs);
      await closed;
      clearInterval(idleCheck);
      clearTimeout(cut);
    },
  };
}

function malformed(status: number, reason: string): HttpError {
  return new HttpError(status, `Expected a well-formed HTTP request, got: ${reason}. Correct it.`);
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const refuse = (error: Error): void => {
      reject(
        new AppError(
          'invalid_config',
          `Expected to listen on ${host}:${port}, got: ${error.message}. Choose another host or port.`,
          {
            cause: error,
          },
        ),
      );
    };
    server.once('error', refuse);
    server.listen(port, host, () => {
      server.off('error', refuse);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** The wildcard addresses can be bound but not called. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
