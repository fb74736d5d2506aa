/** Chats over a WebSocket, where k6 sees each delivery as it comes: the client's own times. */
import { WebSocket } from 'k6/websockets';
import { CHAT_PATH, chatBody } from './body.ts';
import { failed } from './chat-over-http.ts';
import { record } from './metrics.ts';
import { headers, settings } from './settings.ts';
import type { Answer, Chunk, Prompt, Sampling, Tags } from './types.ts';

export interface SocketChat {
  readonly prompt: Prompt;
  readonly sampling?: Sampling;
  readonly tags?: Tags;
  /** After so many deliveries the client has had enough. */
  readonly leaveAfter?: number;
}

export interface ConversationEnd {
  readonly answers: readonly Answer[];
  /** Requests that were cancelled, and that the server said were. */
  readonly cancelled: number;
}

/**
 * Asks one after the other on one connection, then closes it. The iteration lasts until then.
 * @param leaving how a client goes that has had enough: it cancels, or it just closes the connection
 */
export function converse(
  chats: readonly SocketChat[],
  onEnd: (end: ConversationEnd) => void,
  leaving: 'cancel' | 'close' = 'cancel',
): void {
  const socket = new WebSocket(settings.webSocketUrl + CHAT_PATH, null, { headers: headers(), tags: { name: CHAT_PATH } });
  const answers: Answer[] = [];
  let cancelled = 0;
  let current: Exchange | null = null;
  const next = () => {
    const chat = chats[answers.length + cancelled];
    if (chat === undefined) {
      socket.close();
      return;
    }
    current = new Exchange(chat);
    socket.send(chatBody(chat.prompt, chat.sampling));
  };
  socket.addEventListener('open', next);
  socket.addEventListener('message', (event) => {
    if (current === null || !('data' in event)) return;
    const chunk = JSON.parse(String(event.data)) as Chunk;
    current.take(chunk);
    if (current.isTired() && chunk.request_id !== undefined) {
      if (leaving === 'cancel') socket.send(JSON.stringify({ type: 'cancel', request_id: chunk.request_id }));
      else socket.close();
    }
    if (chunk.type !== 'done') return;
    if (chunk.cancelled === true) cancelled += 1;
    else answers.push(current.end());
    current = null;
    next();
  });
  socket.addEventListener('error', (event) => {
    const words = 'error' in event ? event.error : 'unknown';
    const chat = chats[answers.length + cancelled];
    if (chat !== undefined) record(failed('network', words, 0), { category: chat.prompt.category, ...chat.tags });
  });
  socket.addEventListener('close', () => onEnd({ answers, cancelled }));
}

/** One request on the connection. */
class Exchange {
  readonly #chat: SocketChat;
  readonly #sentAt = Date.now();
  readonly #gaps: number[] = [];
  #firstAt: number | null = null;
  #lastAt = 0;
  #text = '';
  #deliveries = 0;
  #hasLeft = false;
  #last: Chunk | null = null;
  #error: Chunk['error'];

  constructor(chat: SocketChat) {
    this.#chat = chat;
  }

  take(chunk: Chunk): void {
    if (chunk.error !== undefined) this.#error = chunk.error;
    if (chunk.metrics !== undefined) this.#last = chunk;
    const delta = chunk.choices?.[0]?.delta;
    const text = delta?.content ?? delta?.reasoning ?? '';
    if (text === '') return;
    const now = Date.now();
    if (this.#firstAt === null) this.#firstAt = now;
    else this.#gaps.push(now - this.#lastAt);
    this.#lastAt = now;
    this.#text += text;
    this.#deliveries += 1;
  }

  /** True once, when the client has had as much as it wanted. */
  isTired(): boolean {
    const { leaveAfter } = this.#chat;
    if (this.#hasLeft || leaveAfter === undefined || this.#deliveries < leaveAfter) return false;
    this.#hasLeft = true;
    return true;
  }

  /** Records what came of it. */
  end(): Answer {
    const { prompt, tags } = this.#chat;
    const answer = this.#answer();
    record(answer, { category: prompt.category, ...tags });
    return answer;
  }

  #answer(): Answer {
    const e2e = Date.now() - this.#sentAt;
    if (this.#error !== undefined) {
      return failed(this.#error.type === 'overloaded_error' ? 'overloaded' : 'stream', this.#error.message, e2e);
    }
    if (this.#last === null) return failed('stream', 'the answer did not tell its usage', e2e);
    const tokens = this.#last.usage?.completion_tokens ?? 0;
    const ttft = this.#firstAt === null ? null : this.#firstAt - this.#sentAt;
    return {
      error: null,
      text: this.#text,
      tokens,
      ttft,
      tpot: ttft === null || tokens < 2 ? null : (e2e - ttft) / (tokens - 1),
      e2e,
      gaps: this.#gaps,
      speculation: this.#last.metrics?.speculative_decoding ?? null,
    };
  }
}
