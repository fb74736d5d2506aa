/** A server of streamed chats that answers at a given pace, with the statistics of drafts that it makes up. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface AskedChat {
  readonly model: string;
  readonly messages: readonly { readonly content: string }[];
  readonly temperature: number;
  readonly max_tokens: number;
  readonly seed: number;
  readonly drafter?: string;
  readonly draft_tokens?: number;
  readonly cache_salt?: string;
  readonly stream_options?: { readonly continuous_usage_stats?: boolean };
}

export interface ChatPlan {
  /** Milliseconds before each delivery. */
  readonly pace: number;
  readonly deliveries: readonly string[];
  /** Deliveries before them. */
  readonly reasoning?: readonly string[];
  /** Evenly in all deliveries. */
  readonly tokens: number;
  /** `acceptance_histogram_by_draft_length`; null for plain decoding. */
  readonly drafts: Readonly<Record<string, readonly number[]>> | null;
  /** Sent in place of the end. */
  readonly breakWith?: string;
}

export class ChatServer implements AsyncDisposable {
  readonly asked: AskedChat[] = [];
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #plan: (asked: AskedChat) => ChatPlan;
  readonly #drafters: boolean;
  atOnce = 0;
  mostAtOnce = 0;

  private constructor(plan: (asked: AskedChat) => ChatPlan, drafters: boolean) {
    this.#plan = plan;
    this.#drafters = drafters;
  }

  static async start(plan: (asked: AskedChat) => ChatPlan, { drafters = true } = {}): Promise<ChatServer> {
    const server = new ChatServer(plan, drafters);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    if (path !== '/v1/chat/completions') {
      const body = this.#facts(path);
      response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body ?? { error: { message: 'none' } }));
      return;
    }
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const asked = JSON.parse(text) as AskedChat;
    this.asked.push(asked);
    this.atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
    const { pace, deliveries, reasoning = [], tokens, drafts, breakWith } = this.#plan(asked);
    const send = (chunk: object) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    send({ choices: [{ delta: { role: 'assistant', content: '' } }] });
    const deltas = [...reasoning.map((text) => ({ reasoning: text })), ...deliveries.map((content) => ({ content }))];
    const isCounted = asked.stream_options?.continuous_usage_stats === true;
    for (const [i, delta] of deltas.entries()) {
      await sleep(pace, undefined, { ref: false });
      const usage = { prompt_tokens: 12, completion_tokens: Math.round((tokens * (i + 1)) / deltas.length) };
      send({ choices: [{ delta }], usage: isCounted ? usage : null });
    }
    this.atOnce -= 1;
    if (breakWith !== undefined) {
      response.end(breakWith);
      return;
    }
    send({
      choices: [],
      usage: { prompt_tokens: 12, completion_tokens: tokens },
      metrics: {
        time_to_first_token_ms: pace,
        mean_itl_ms: null,
        speculative_decoding: drafts === null ? null : counts(drafts),
      },
    });
    response.end('data: [DONE]\n\n');
  }

  #facts(path: string): object | null {
    const drafter = (name: string, isDefault: boolean) => ({
      name,
      kind: name,
      max_draft_tokens: 4,
      length_policy: 'fixed',
      default: isDefault,
    });
    if (path === '/v1/models') return { data: [{ id: 'm', max_model_len: 1000 }] };
    if (path === '/version') return { version: '1.2.3' };
    if (path === '/v1/drafters' && this.#drafters)
      return { data: ['good', 'bad', 'none'].map((name, i) => drafter(name, i === 0)) };
    return null;
  }
}

function counts(drafts: Readonly<Record<string, readonly number[]>>) {
  const entries = Object.entries(drafts);
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  return {
    num_spec_steps: sum(entries.map(([, histogram]) => sum(histogram))),
    num_draft_tokens: sum(entries.map(([length, histogram]) => Number(length) * sum(histogram))),
    num_accepted_draft_tokens: sum(entries.map(([, histogram]) => sum(histogram.map((rounds, accepted) => rounds * accepted)))),
    acceptance_histogram_by_draft_length: drafts,
  };
}
