/** Texts of any length to token ids, without keeping others waiting. */
import { Worker } from 'node:worker_threads';
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import { DisposedError } from '../core/disposed-error.ts';
import type { TokenId } from '../core/token.ts';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';
import type { EncodeReply, EncodeRequest } from './tokenizer-thread.ts';

/** Texts of so many characters together take two milliseconds or so, whatever they are; a million of one letter takes seconds. */
const MOST_INLINE = 1024;
/** Characters that may wait for the worker, which is seconds of its work. */
const MOST_WAITING = 16 * 1024 * 1024;

interface Job extends EncodeRequest {
  readonly characters: number;
  readonly resolve: (ids: readonly (readonly TokenId[])[]) => void;
  readonly reject: (error: Error) => void;
}

/** What is long goes to a worker thread, in the order of arrival; it starts with the first of it. */
export class PromptEncoder implements AsyncDisposable {
  readonly #tokenizer: Tokenizer;
  readonly #folder: string;
  /** The first one is under way. */
  readonly #jobs: Job[] = [];
  #worker: Worker | null = null;
  #disposed = false;

  /** @param folder of the model, where the tokenizer was loaded from */
  constructor(tokenizer: Tokenizer, folder: string) {
    this.#tokenizer = tokenizer;
    this.#folder = folder;
  }

  /**
   * `Tokenizer.encode` of each text.
   * @throws AppError `overloaded` when too much waits; AbortedError
   */
  async encode(
    texts: readonly string[],
    options: EncodeOptions,
    signal?: AbortSignal,
  ): Promise<readonly (readonly TokenId[])[]> {
    const characters = count(texts);
    if (characters <= MOST_INLINE) return texts.map((text) => this.#tokenizer.encode(text, options));
    if (this.#disposed) throw new DisposedError('A prompt encoder');
    const waiting = this.#jobs.reduce((sum, job) => sum + job.characters, 0);
    if (waiting > 0 && waiting + characters > MOST_WAITING) {
      throw new AppError(
        'overloaded',
        `Expected at most ${MOST_WAITING} characters that wait to be encoded, got more. Try again later.`,
      );
    }
    let abandon = (): void => undefined;
    try {
      return await new Promise((resolve, reject) => {
        const job = { texts, options, characters, resolve, reject };
        abandon = () => {
          // What is under way cannot be stopped, and keeps its place.
          if (this.#jobs.indexOf(job) > 0) this.#jobs.splice(this.#jobs.indexOf(job), 1);
          reject(new AbortedError('Encoding a text', signal?.reason));
        };
        if (signal?.aborted) return abandon();
        signal?.addEventListener('abort', abandon, { once: true });
        this.#jobs.push(job);
        if (this.#jobs.length === 1) this.#post(job);
      });
    } finally {
      signal?.removeEventListener('abort', abandon);
    }
  }

  #post({ texts, options }: Job): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage({ texts, options } satisfies EncodeRequest);
  }

  #start(): Worker {
    const worker = new Worker(new URL('./start-tokenizer-thread.js', import.meta.url), { workerData: this.#folder });
    // It ends with the process; only texts under way are worth waiting for, and those who asked do.
    worker.unref();
    worker.on('message', ({ ids }: EncodeReply) => this.#next()?.resolve(ids.map((each) => Array.from(each))));
    const lose = (reason: string): void => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      this.#next()?.reject(new AppError('internal', `expected the tokenizer's thread to go on, got ${reason}`));
    };
    worker.on('error', (cause) => lose(`"${cause.message}"`));
    worker.on('exit', () => lose('its end'));
    return worker;
  }

  /** The job that was under way; the next one is from here on. */
  #next(): Job | undefined {
    const done = this.#jobs.shift();
    if (this.#disposed) for (const job of this.#jobs.splice(0)) job.reject(new DisposedError('A prompt encoder'));
    const [next] = this.#jobs;
    if (next !== undefined) this.#post(next);
    return done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await this.#worker?.terminate();
  }
}

function count(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
