/** One WebSocket: several requests side by side, each answered by the frames that SSE would carry. */
import type { RawData, WebSocket } from 'ws';
import { abortWith } from '../../core/abort-with.ts';
import { AppError } from '../../core/app-error.ts';
import { AccessEntry } from '../access-log.ts';
import type { Caller } from '../api-keys.ts';
import type { Clock } from '../clock.ts';
import { CLOSE_CODE, errorReply } from '../error-response.ts';
import type { ReportFailure } from '../failure-report.ts';
import type { GenerationKind, GenerationService } from '../generation-service.ts';
import type { Logger } from '../logger.ts';
import { newRequestId } from '../request-id.ts';
import type { RequestTracer, TraceHeaders } from '../request-tracer.ts';
import { type RequestTurn, type RequestTurns, whileWaitedFor } from '../request-turns.ts';
import { fieldError } from '../schemas/parse-request.ts';
import type { WebSocketLimits } from '../server-config.ts';
import { parseClientFrame } from './client-frame.ts';
import { FrameRate } from './frame-rate.ts';

export interface ConnectionOptions {
  readonly kind: GenerationKind;
  readonly path: string;
  readonly service: GenerationService;
  readonly turns: RequestTurns;
  readonly caller: Caller;
  readonly limits: WebSocketLimits;
  readonly reportFailure: ReportFailure;
  readonly logger: Logger;
  readonly tracer: RequestTracer | null;
  /** Of the handshake: its traces are those of all requests on the connection. */
  readonly traceHeaders: TraceHeaders;
  readonly clock: Clock;
}

/** Time for the answer to a close frame. */
const CLOSE_MS = 1000;

export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #options: ConnectionOptions;
  /** The running requests, by id. */
  readonly #running = new Map<string, AbortController>();
  readonly #closed = new AbortController();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #frameRate: FrameRate;
  #errorFrames = 0;
  #lastActivity: number;
  #answeredPing = true;
  #isDraining = false;

  constructor(socket: WebSocket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#frameRate = new FrameRate(options.limits.maxFramesPerSecond, options.clock);
    this.#lastActivity = options.clock.monotonicMs();
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    socket.on('pong', () => {
      this.#answeredPing = true;
    });
    socket.once('close', () => this.#onClose());
    this.#heartbeat = setInterval(() => this.#beat(), options.limits.pingIntervalMs);
  }

  get caller(): Caller {
    return this.#options.caller;
  }

  /** Takes no more requests and closes as soon as none is running. */
  drain(): void {
    this.#isDraining = true;
    this.#closeWhenDrained();
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    // What had come before the close is not worth reading.
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (!this.#frameRate.take()) {
      this.#socket.close(CLOSE_CODE.policy, 'too many frames in a second');
      return;
    }
    this.#lastActivity = this.#options.clock.monotonicMs();
    try {
      if (isBinary) {
        throw new AppError('invalid_request', 'Expected a text frame, got a binary one. Send JSON as text.', {
          details: { code: 'invalid_json' },
        });
      }
      const frame = parseClientFrame(data.toString());
      if (frame.type === 'cancel') this.#cancel(frame.requestId);
      else this.#accept(frame.requestId ?? newRequestId(), frame.body);
      this.#errorFrames = 0;
    } catch (error) {
      this.#refuseFrame(error);
    }
  }

  #accept(requestId: string, body: Readonly<Record<string, unknown>>): void {
    const { limits } = this.#options;
    if (this.#running.has(requestId)) {
      throw new AppError('invalid_request', `Expected a request_id that is not running, got ${requestId}. Use another one.`, {
        details: { param: 'request_id', code: 'duplicate_request_id', requestId },
      });
    }
    if (this.#running.size >= limits.maxRequestsPerConnection) {
      throw new AppError(
        'overloaded',
        `Expected at most ${limits.maxRequestsPerConnection} requests at a time on a connection, got one more. Wait for an answer to end.`,
        { details: { requestId } },
      );
    }
    const abort = new AbortController();
    this.#running.set(requestId, abort);
    void this.#run(requestId, body, abort);
  }

  #cancel(requestId: string): void {
    const abort = this.#running.get(requestId);
    if (abort === undefined) {
      throw new AppError('invalid_request', `Expected the id of a running request, got ${requestId}. Nothing was cancelled.`, {
        details: { param: 'request_id', code: 'unknown_request_id', requestId },
      });
    }
    abort.abort();
  }

  /** Answers one request; whatever happens, it ends with a `done` frame. Never rejects. */
  async #run(requestId: string, body: Readonly<Record<string, unknown>>, abort: AbortController): Promise<void> {
    const { kind, path, service, turns, caller, logger, clock, tracer, traceHeaders } = this.#options;
    const start = { requestId, transport: 'ws', method: 'GET', path } as const;
    const access = new AccessEntry(start, { logger, clock, trace: tracer?.begin(start, traceHeaders) ?? null });
    using _ = abortWith(abort, this.#closed.signal);
    let done: object = { type: 'done', request_id: requestId };
    let log: readonly [status: number, errorCode?: string] = [200];
    let turn: RequestTurn | null = null;
    try {
      turn = turns.begin(caller, abort.signal);
      const { signal } = turn;
      if (this.#isDraining) {
        throw new AppError('unavailable', 'Expected a running server, got one that is shutting down. Try another one.');
      }
      const { stream = null } = body;
      if (stream !== null && stream !== true) throw fieldError('stream', 'true or absent on a WebSocket', stream);
      const request = { ...body, stream: true, request_id: requestId };
      const plan = await whileWaitedFor(signal, () => service.plan(kind, request, requestId, signal));
      for await (const chunk of await service.stream(plan, access.record, signal)) {
        await this.#send({ ...chunk, request_id: requestId });
      }
    } catch (error) {
      if (abort.signal.aborted) {
        done = { ...done, cancelled: true };
        log = [499, 'aborted'];
      } else {
        const reply = this.#options.reportFailure(error, requestId, access.logger);
        log = [reply.status, reply.body.error.code];
        await this.#send({ ...reply.body, request_id: requestId });
      }
    }
    turn?.[Symbol.dispose]();
    // Before the frame, so that a client that has read it may use the id again.
    this.#running.delete(requestId);
    this.#lastActivity = clock.monotonicMs();
    await this.#send(done);
    access.write(...log);
    this.#closeWhenDrained();
  }

  /** A frame that starts nothing: an error frame answers it, and too many of them in a row end the connection. */
  #refuseFrame(error: unknown): void {
    const named = error instanceof AppError ? error.details['requestId'] : undefined;
    const requestId = typeof named === 'string' ? named : null;
    const reply = this.#options.reportFailure(error, requestId ?? 'none');
    void this.#send({ ...reply.body, request_id: requestId });
    this.#errorFrames += 1;
    if (this.#errorFrames < this.#options.limits.maxErrorFrames) return;
    this.#socket.close(CLOSE_CODE.policy, 'too many frames that are no request');
  }

  /** Resolves when the next frame may follow: at once, or when the client has read enough. Never rejects. */
  async #send(frame: object): Promise<void> {
    const { limits } = this.#options;
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    await new Promise<void>((resolve) => {
      const release = (): void => {
        this.#closed.signal.removeEventListener('abort', release);
        resolve();
      };
      socket.send(JSON.stringify(frame), release);
      if (socket.bufferedAmount > limits.hardLimitBytes) {
        // A close frame would only queue behind what the client does not read.
        this.#options.logger.warn({ path: this.#options.path, bufferedBytes: socket.bufferedAmount }, 'websocket cut');
        socket.terminate();
      }
      if (socket.bufferedAmount <= limits.highWaterBytes) resolve();
      else this.#closed.signal.addEventListener('abort', release, { once: true });
    });
  }

  #beat(): void {
    const { clock, limits } = this.#options;
    if (!this.#answeredPing) {
      this.#socket.terminate();
      return;
    }
    if (this.#running.size === 0 && clock.monotonicMs() - this.#lastActivity >= limits.idleTimeoutMs) {
      this.#socket.close(CLOSE_CODE.normal, 'idle');
      return;
    }
    this.#answeredPing = false;
    this.#socket.ping();
  }

  #onClose(): void {
    clearInterval(this.#heartbeat);
    this.#closed.abort();
  }

  #closeWhenDrained(): void {
    const socket = this.#socket;
    if (!this.#isDraining || this.#running.size > 0 || socket.readyState !== socket.OPEN) return;
    socket.close(CLOSE_CODE.goingAway, 'shutting down');
    // Who still reads has the time of the shutdown; who has read all and does not close must not take it.
    const cut = setInterval(() => {
      if (socket.bufferedAmount === 0) socket.terminate();
    }, CLOSE_MS);
    socket.once('close', () => clearInterval(cut));
  }
}

/** Says why on the new connection, then closes it with the error's own close code or the given one. */
export function refuseConnection(socket: WebSocket, error: AppError, requestId: string, closeCode?: number): void {
  const reply = errorReply(error, requestId);
  socket.send(JSON.stringify({ ...reply.body, request_id: null }));
  socket.close(closeCode ?? reply.closeCode, reply.body.error.code);
}
