/** Text of any length to token ids, without keeping others waiting. */
import { Worker } from 'node:worker_threads';
import { AppError } from '../core/app-error.ts';
import { DisposedError } from '../core/disposed-error.ts';
import type { TokenId } from '../core/token.ts';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';
import type { EncodeReply, EncodeRequest } from './tokenizer-thread.ts';

/** Up to so many characters take a few milliseconds, whatever they are; a million of one letter takes seconds. */
const MOST_INLINE = 2048;

interface Waiting {
  readonly resolve: (ids: readonly TokenId[]) => void;
  readonly reject: (error: Error) => void;
}

/** Long texts go to a worker thread, which starts with the first of them. */
export class PromptEncoder implements AsyncDisposable {
  readonly #tokenizer: Tokenizer;
  readonly #folder: string;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #requests = 0;
  #disposed = false;

  /** @param folder of the model, where the tokenizer was loaded from */
  constructor(tokenizer: Tokenizer, folder: string) {
    this.#tokenizer = tokenizer;
    this.#folder = folder;
  }

  /** The same as `Tokenizer.encode`. */
  async encode(text: string, options: EncodeOptions): Promise<readonly TokenId[]> {
    if (text.length <= MOST_INLINE) return this.#tokenizer.encode(text, options);
    if (this.#disposed) throw new DisposedError('A prompt encoder');
    const worker = this.#worker ?? this.#start();
    const id = this.#requests++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, text, options } satisfies EncodeRequest);
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL('./start-tokenizer-thread.js', import.meta.url), { workerData: this.#folder });
    // It ends with the process; only texts under way are worth waiting for, and those who asked do.
    worker.unref();
    worker.on('message', ({ id, ids }: EncodeReply) => {
      this.#waiting.get(id)?.resolve(Array.from(ids));
      this.#waiting.delete(id);
    });
    worker.on('error', (cause) => this.#lose(`expected the tokenizer's thread to go on, got "${cause.message}"`));
    worker.on('exit', () => this.#lose("expected the tokenizer's thread to go on, got its end"));
    this.#worker = worker;
    return worker;
  }

  /** The next long text starts another one. */
  #lose(message: string): void {
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(new AppError('internal', message));
    this.#waiting.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await this.#worker?.terminate();
  }
}
