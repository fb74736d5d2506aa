/** `k6/websockets`. An iteration lasts until its sockets are closed. */
import { WebSocket as NodeWebSocket } from 'ws';
import type { Tags } from '../../metrics/metric.ts';
import { requirePhase } from '../require-phase.ts';
import type { VuState } from '../vu-state.ts';

type EventName = 'open' | 'close' | 'error' | 'message' | 'ping' | 'pong';
type Listener = (event: Readonly<Record<string, unknown>>) => unknown;

interface Params {
  readonly headers?: Readonly<Record<string, string>>;
  readonly tags?: Tags;
}

/** Samples of a long connection are sent about this often. */
const FLUSH_MS = 250;
const NORMAL_CLOSURE = 1000;
const GOING_AWAY = 1001;

export function websocketsModule(state: VuState) {
  class WebSocket {
    static readonly CONNECTING = 0;
    static readonly OPEN = 1;
    static readonly CLOSING = 2;
    static readonly CLOSED = 3;
    readonly CONNECTING = 0;
    readonly OPEN = 1;
    readonly CLOSING = 2;
    readonly CLOSED = 3;
    readonly url: string;
    binaryType = 'arraybuffer';
    onopen: Listener | null = null;
    onclose: Listener | null = null;
    onerror: Listener | null = null;
    onmessage: Listener | null = null;
    onping: Listener | null = null;
    onpong: Listener | null = null;
    readonly #socket: NodeWebSocket;
    readonly #tags: Tags;
    readonly #listeners: { readonly name: EventName; readonly listener: Listener }[] = [];
    #flushedAt = performance.now();
    #hasFailed = false;

    constructor(url: string, _protocols: null = null, params: Params | null = null) {
      requirePhase(state, 'a WebSocket', ['iteration']);
      this.url = String(url);
      this.#tags = { url: this.url, ...params?.tags };
      const done = state.pending.begin();
      const begun = performance.now();
      this.#socket = new NodeWebSocket(this.url, { headers: params?.headers ?? {}, perMessageDeflate: false });
      this.#socket.binaryType = 'arraybuffer';
      state.add('ws_sessions', 1, this.#tags);
      this.#socket.on('open', () => {
        state.add('ws_connecting', performance.now() - begun, this.#tags);
        this.#emit('open', {});
      });
      this.#socket.on('message', (data, isBinary) => {
        state.add('ws_msgs_received', 1, this.#tags);
        const text = isBinary ? data : Buffer.from(data as ArrayBuffer).toString();
        state.add(
          'data_received',
          typeof text === 'string' ? Buffer.byteLength(text) : (data as ArrayBuffer).byteLength,
          this.#tags,
        );
        this.#emit('message', { data: text });
        if (performance.now() - this.#flushedAt > FLUSH_MS) {
          this.#flushedAt = performance.now();
          state.flush();
        }
      });
      this.#socket.on('ping', () => this.#emit('ping', {}));
      this.#socket.on('pong', () => this.#emit('pong', {}));
      this.#socket.on('error', (error) => this.#fail(error.message));
      this.#socket.on('close', (code, reason) => {
        // An end that the peer did not announce as one is an error, as in k6.
        if (code !== NORMAL_CLOSURE && code !== GOING_AWAY) this.#fail(`closed with ${code} ${reason.toString()}`.trimEnd());
        state.add('ws_session_duration', performance.now() - begun, this.#tags);
        this.#emit('close', { code, reason: reason.toString() });
        done();
      });
    }

    get readyState(): number {
      return this.#socket.readyState;
    }

    get bufferedAmount(): number {
      return this.#socket.bufferedAmount;
    }

    send(data: string | ArrayBuffer | ArrayBufferView): void {
      if (this.#socket.readyState !== NodeWebSocket.OPEN) throw new Error('Expected an open WebSocket to send on');
      state.add('ws_msgs_sent', 1, this.#tags);
      state.add('data_sent', typeof data === 'string' ? Buffer.byteLength(data) : data.byteLength, this.#tags);
      this.#socket.send(data);
      state.flush();
    }

    close(code: number = NORMAL_CLOSURE, reason?: string): void {
      this.#socket.close(code, reason);
    }

    ping(): void {
      this.#socket.ping();
    }

    addEventListener(name: EventName, listener: Listener): void {
      this.#listeners.push({ name, listener });
    }

    /** Once: what ends a connection is told before its close, by whichever of the two comes first. */
    #fail(error: string): void {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      this.#emit('error', { error });
    }

    #emit(type: EventName, facts: Readonly<Record<string, unknown>>): void {
      const event = { type, timestamp: Date.now(), ...facts };
      const own = this[`on${type}`];
      if (own !== null) state.pending.call(() => own(event));
      for (const { name, listener } of this.#listeners) if (name === type) state.pending.call(() => listener(event));
    }
  }
  return { WebSocket };
}
