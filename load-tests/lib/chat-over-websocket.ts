/** Chats over a WebSocket, where k6 sees each delivery as it comes: the client's own times. */
import { WebSocket } from 'k6/websockets';
import { CHAT_PATH, chatBody } from './body.ts';
import { failed, textOf } from './chat-over-http.ts';
import { record, recordRequest, requestTags } from './metrics.ts';
import { headers, settings } from './settings.ts';
import type { Answer, Chunk, ErrorType, Gap, Prompt, Sampling, Tags } from './types.ts';

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
 * Asks one after the other on one connection, then closes it. The iteration lasts until then. A connection that ends before is
 * the failure of the request that it took along, or of the next one, which could not be asked.
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
  let isOver = false;
  const leave = () => {
    isOver = true;
    socket.close();
  };
  const lose = (words: string) => {
    const chat = chats[answers.length + cancelled];
    if (isOver || chat === undefined) return;
    isOver = true;
    (current ?? new Exchange(chat)).fail('network', words);
  };
  const next = () => {
    const chat = chats[answers.length + cancelled];
    if (isOver || chat === undefined) {
      leave();
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
      else leave();
    }
    if (chunk.type !== 'done') return;
    if (chunk.cancelled === true) cancelled += 1;
    else answers.push(current.end());
    current = null;
    next();
  });
  socket.addEventListener('error', (event) => lose('error' in event ? event.error : 'unknown'));
  socket.addEventListener('close', () => {
    // Not every end is told as an error.
    lose('the connection was closed');
    onEnd({ answers, cancelled });
  });
}

/** One request on the connection. */
class Exchange {
  readonly #chat: SocketChat;
  readonly #sentAt = Date.now();
  readonly #gaps: Gap[] = [];
  #firstAt: number | null = null;
  #lastAt = 0;
  /** Tokens that have come with a text. */
  #tokens = 0;
  #text = '';
  #deliveries = 0;
  #hasLeft = false;
  #last: Chunk | null = null;
  #error: Chunk['error'];

  readonly #tags: Tags;

  constructor(chat: SocketChat) {
    this.#chat = chat;
    this.#tags = requestTags(chat.prompt, chat.sampling ?? {}, chat.tags ?? {});
    recordRequest(this.#tags);
  }

  take(chunk: Chunk): void {
    if (chunk.error !== undefined) this.#error = chunk.error;
    if (chunk.metrics !== undefined) this.#last = chunk;
    const text = textOf(chunk);
    if (text === '') return;
    const now = Date.now();
    const tokens = chunk.usage?.completion_tokens ?? this.#tokens;
    if (this.#firstAt === null) this.#firstAt = now;
    else this.#gaps.push({ ms: now - this.#lastAt, tokens: tokens - this.#tokens });
    this.#lastAt = now;
    this.#tokens = tokens;
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
    const answer = this.#answer();
    record(answer, this.#tags);
    return answer;
  }

  /** Records that nothing did, in the server's words where it has said why. */
  fail(type: ErrorType, words: string): void {
    record(this.#error === undefined ? failed(type, words, Date.now() - this.#sentAt) : this.#answer(), this.#tags);
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
