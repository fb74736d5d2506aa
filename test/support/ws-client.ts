/** A WebSocket client that keeps what it receives. */
import { type ClientOptions, WebSocket } from 'ws';
import { until, within } from './labelled-timeout.ts';

export type Frame = Readonly<Record<string, unknown>>;

export class WsClient {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  readonly #closed: Promise<{ readonly code: number; readonly reason: string }>;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => this.frames.push(JSON.parse(data.toString()) as Frame));
    socket.on('error', () => undefined);
    this.#closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  /** Connects; rejects with the status and body of a refused handshake. */
  static async connect(httpUrl: string, path: string, options: ClientOptions = {}): Promise<WsClient> {
    const socket = new WebSocket(httpUrl.replace(/^http/, 'ws') + path, options);
    const client = new WsClient(socket);
    await within(
      'the WebSocket opens',
      new Promise<void>((resolve, reject) => {
        socket.once('open', () => resolve());
        socket.once('error', reject);
        socket.once('unexpected-response', (_request, response) => {
          let body = '';
          response.on('data', (data: Buffer) => {
            body += data.toString();
          });
          response.on('end', () => reject(new Error(`${response.statusCode} ${body}`)));
        });
      }),
    );
    return client;
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  /** Frames of the request up to its `done` frame, that one included. */
  async answer(requestId: string): Promise<readonly Frame[]> {
    const mine = () => this.frames.filter((frame) => frame['request_id'] === requestId);
    await until(`request ${requestId} is done`, () => mine().at(-1)?.['type'] === 'done');
    return mine();
  }

  /** The frame with this number, counted from 0. */
  async frame(index: number): Promise<Frame> {
    await until(`frame ${index} comes`, () => this.frames.length > index);
    return this.frames[index]!;
  }

  closed(): Promise<{ readonly code: number; readonly reason: string }> {
    return within('the WebSocket closes', this.#closed);
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed();
  }
}
