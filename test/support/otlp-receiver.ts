/** An OpenTelemetry collector on the loopback interface that keeps what it is sent. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values: readonly OtlpValue[] };
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly status: { readonly code?: number };
}

export interface ReceivedSpan extends Omit<OtlpSpan, 'attributes' | 'startTimeUnixNano' | 'endTimeUnixNano'> {
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Of the process that sent it. */
  readonly resource: Readonly<Record<string, unknown>>;
}

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** Paths and headers of all requests. */
  readonly requests: { readonly path: string; readonly headers: NodeJS.Dict<string | string[]> }[] = [];
  /** Answered instead of 200 while it is not null. */
  refuseWith: number | null = null;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      let body = '';
      for await (const data of request) body += data;
      this.requests.push({ path: request.url ?? '', headers: request.headers });
      if (this.refuseWith === null) this.#take(JSON.parse(body));
      response.writeHead(this.refuseWith ?? 200, { 'content-type': 'application/json' }).end('{}');
    });
  }

  static async open(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The only span of this name. */
  only(name: string): ReceivedSpan {
    const found = this.spans.filter((span) => span.name === name);
    if (found.length !== 1) throw new Error(`Expected one span ${name}, got ${this.spans.map((span) => span.name)}`);
    return found[0]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #take({ resourceSpans }: { readonly resourceSpans: readonly OtlpResourceSpans[] }): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const { attributes, startTimeUnixNano, endTimeUnixNano, ...span } of scopeSpans.flatMap((scope) => scope.spans)) {
        this.spans.push({
          ...span,
          start: Number(startTimeUnixNano) / 1e6,
          end: Number(endTimeUnixNano) / 1e6,
          attributes: toRecord(attributes),
          resource: toRecord(resource.attributes),
        });
      }
    }
  }
}

interface OtlpResourceSpans {
  readonly resource: { readonly attributes: readonly OtlpAttribute[] };
  readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
}

function toRecord(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

function plain({ stringValue, intValue, doubleValue, boolValue, arrayValue }: OtlpValue): unknown {
  if (arrayValue !== undefined) return arrayValue.values.map(plain);
  return stringValue ?? intValue ?? doubleValue ?? boolValue;
}
