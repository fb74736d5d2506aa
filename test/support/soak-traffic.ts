/** Clients that ask for everything that can be asked for, over SSE, WebSocket and whole answers, and note what they got. */
import { until } from './labelled-timeout.ts';
import type { TestbedPrompt } from './testbed-engine.ts';
import { type Frame, WsClient } from './ws-client.ts';

/** What became of one request, as its client saw it. */
export type Outcome =
  | { readonly kind: 'answered'; readonly choices: number; readonly completionTokens: number }
  /** An error with the envelope: a refusal, or a failure. */
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'unexpected'; readonly what: string };

export interface TrafficOptions {
  readonly url: string;
  readonly prompts: readonly TestbedPrompt[];
  readonly drafters: readonly string[];
  readonly clients: number;
  /** When no more is asked, on the clock of `performance.now()`. */
  readonly endsAt: number;
  readonly seed: number;
  readonly onOutcome: (outcome: Outcome) => void;
}

const CHAT = '/v1/chat/completions';
/** What a client does with an answer. */
const WAYS = ['sse', 'sse', 'sse', 'whole', 'whole', 'ws', 'ws', 'sse-cancel', 'ws-cancel', 'bad'] as const;
const STRUCTURES: readonly object[] = [
  { response_format: { type: 'json_object' } },
  { structured_outputs: { choice: ['yes', 'no', 'that depends'] } },
];
const BAD_BODIES: readonly object[] = [
  { temperature: 9 },
  { no_such_field: 1 },
  { model: 'another' },
  { drafter: 'nobody' },
  { max_tokens: 0 },
  { messages: [{ role: 'user', content: 'far too long. '.repeat(600) }] },
];

/** Runs until the time is over and all answers have ended. */
export async function runTraffic(options: TrafficOptions): Promise<void> {
  await Promise.all(Array.from({ length: options.clients }, (_, i) => new SoakClient(options, options.seed + i).run()));
}

class SoakClient {
  readonly #options: TrafficOptions;
  #state: number;
  #requests = 0;

  constructor(options: TrafficOptions, seed: number) {
    this.#options = options;
    this.#state = seed * 2654435761;
  }

  async run(): Promise<void> {
    const { url, endsAt, onOutcome } = this.#options;
    const socket = await WsClient.connect(url, CHAT);
    while (performance.now() < endsAt) {
      const way = this.#pick(WAYS);
      try {
        const outcome = await this.#ask(way, socket);
        onOutcome(outcome);
        if (outcome.kind === 'error' && outcome.code === 'overloaded') await this.#backOff();
      } catch (error) {
        onOutcome({ kind: 'unexpected', what: `${way}: ${error instanceof Error ? error.message : String(error)}` });
      }
    }
    await socket.close();
  }

  async #ask(way: (typeof WAYS)[number], socket: WsClient): Promise<Outcome> {
    const body = this.#body();
    switch (way) {
      case 'whole':
        return whole(await this.#post({ ...body, n: this.#pick([1, 1, 1, 2]) }));
      case 'bad':
        return whole(await this.#post({ ...body, ...this.#pick(BAD_BODIES) }));
      case 'sse':
        return streamed(await this.#post(streaming(body)));
      case 'sse-cancel':
        return this.#leave(streaming(body));
      case 'ws':
      case 'ws-cancel':
        return this.#overSocket(socket, body, way === 'ws-cancel');
    }
  }

  /** Or refusals would be most of the traffic. */
  async #backOff(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 20 + this.#next() * 100));
  }

  #body(): Record<string, unknown> {
    const { prompts, drafters } = this.#options;
    const messages = [...this.#pick(prompts).messages];
    // Every third request is the next turn of a chat, or a long one.
    if (this.#next() < 0.33)
      messages.push({ role: 'assistant', content: 'So it is. '.repeat(this.#pick([1, 20])) }, messages[0]!);
    return {
      messages,
      max_tokens: this.#pick([1, 4, 16, 40, 120]),
      temperature: this.#pick([0, 0, 0.8]),
      seed: Math.floor(this.#next() * 1000),
      ignore_eos: this.#next() < 0.3,
      ...this.#pick([{}, ...drafters.map((drafter) => ({ drafter })), { drafter: 'none' }, { speculative: false }]),
      ...this.#pick([{}, {}, { draft_tokens: 0 }, { draft_tokens: 1 }, { draft_tokens: 3 }]),
      ...this.#pick([{}, {}, { priority: -1 }, { priority: 3 }, { cache_salt: 'mine' }, { stop: ['e'] }]),
      ...this.#pick([{}, {}, {}, {}, ...STRUCTURES]),
    };
  }

  #post(body: object, signal?: AbortSignal): Promise<Response> {
    return fetch(this.#options.url + CHAT, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** Goes away somewhere on the way. */
  async #leave(body: object): Promise<Outcome> {
    const gone = new AbortController();
    const timer = setTimeout(() => gone.abort(), this.#next() * 150);
    try {
      return await streamed(await this.#post(body, gone.signal));
    } catch (error) {
      if (gone.signal.aborted) return { kind: 'cancelled' };
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #overSocket(socket: WsClient, body: object, cancels: boolean): Promise<Outcome> {
    const requestId = `r${this.#requests++}`;
    socket.send({ ...body, stream_options: { include_usage: true }, request_id: requestId });
    const timer = cancels
      ? setTimeout(() => socket.send({ type: 'cancel', request_id: requestId }), this.#next() * 150)
      : undefined;
    // A cancel that comes too late is answered behind the end.
    const isDone = (frame: Frame) => frame['request_id'] === requestId && frame['type'] === 'done';
    await until(`request ${requestId} is done`, () => socket.frames.some(isDone), ANSWER_MS);
    clearTimeout(timer);
    const frames = socket.frames.filter((frame) => frame['request_id'] === requestId);
    socket.frames.length = 0;
    const end = frames.findIndex(isDone);
    if (frames[end]?.['cancelled'] === true) return { kind: 'cancelled' };
    return outcomeOf(frames.slice(0, end));
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#next() * list.length)]!;
  }

  /** 0 to 1; the same sequence for the same seed. */
  #next(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 2 ** 32;
  }
}

/** The longest that anybody waits for an answer. */
const ANSWER_MS = 60_000;

function streaming(body: object): object {
  return { ...body, stream: true, stream_options: { include_usage: true } };
}

async function whole(response: Response): Promise<Outcome> {
  return outcomeOf([(await response.json()) as Frame]);
}

async function streamed(response: Response): Promise<Outcome> {
  const text = await response.text();
  if (!response.ok) return outcomeOf([JSON.parse(text) as Frame]);
  const data = text.split('\n\n').filter((event) => event !== '');
  if (data.pop() !== 'data: [DONE]') return { kind: 'unexpected', what: 'a stream without [DONE]' };
  return outcomeOf(data.map((event) => JSON.parse(event.slice('data: '.length)) as Frame));
}

interface Choice {
  readonly finish_reason: string | null;
}

/** @param payloads all that came of an answer, the last with its usage */
function outcomeOf(payloads: readonly Frame[]): Outcome {
  const last = payloads.at(-1) ?? {};
  const error = last['error'] as { readonly code: string; readonly message: string } | undefined;
  if (error !== undefined) {
    return typeof error.code === 'string' && error.message.length > 0
      ? { kind: 'error', code: error.code }
      : { kind: 'unexpected', what: JSON.stringify(error) };
  }
  const ends = payloads.flatMap((payload) =>
    (payload['choices'] as Choice[]).filter((choice) => choice.finish_reason !== null),
  );
  const usage = last['usage'] as { readonly completion_tokens: number } | undefined;
  if (ends.length === 0 || usage === undefined) return { kind: 'unexpected', what: JSON.stringify(last).slice(0, 200) };
  return { kind: 'answered', choices: ends.length, completionTokens: usage.completion_tokens };
}
