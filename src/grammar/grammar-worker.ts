/** A worker thread that compiles structures and computes masks, seen from the event loop. */
import { Worker } from 'node:worker_threads';
import { AppError } from '../core/app-error.ts';
import type { AnswerStructure } from '../core/token-rules.ts';
import type { GrammarReply, GrammarRequest, GrammarVocabulary } from './grammar-messages.ts';

/** The worker gave up over what it was asked, or took too long: the worker is gone, and asking again would end alike. */
export class GrammarFault extends Error {
  /** Whether it took too long. */
  readonly overrun: boolean;

  constructor(message: string, overrun: boolean) {
    super(message);
    this.overrun = overrun;
  }
}

/** The worker ended over something else; ask another one. */
export class WorkerLost extends Error {}

export interface Look {
  readonly matcher: number;
  /** Of a structure that this worker has compiled. */
  readonly key: string;
  /** Emitted since the matcher's last look. */
  readonly tokens: readonly number[];
  readonly draft: readonly number[];
}

/** As {@link GrammarReply} has them; both reject alike. */
export interface LookResult {
  readonly allowed: Promise<number>;
  readonly masks: Promise<Int32Array>;
}

interface Pending {
  readonly limitMs: number;
  readonly take: (reply: GrammarReply) => boolean;
  readonly fail: (error: Error) => void;
}

/** From its start to its end; it ends with its first fault, as the engine cannot go on behind an error. */
export class GrammarWorker implements AsyncDisposable {
  readonly #worker: Worker;
  /** In the order in which the worker serves them; the time of the first one runs. */
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #ready = false;
  #timer: NodeJS.Timeout | undefined;
  #ended: Promise<unknown> | null = null;

  constructor(vocabulary: GrammarVocabulary) {
    this.#worker = new Worker(new URL('./start-grammar-thread.js', import.meta.url), { workerData: vocabulary });
    this.#worker.on('message', (reply: GrammarReply) => this.#take(reply));
    this.#worker.on('error', (error) => this.#end(new GrammarFault(error.message, false)));
    this.#worker.on('exit', () => this.#end(new WorkerLost('The worker ended')));
  }

  get alive(): boolean {
    return this.#ended === null;
  }

  /** @returns what it took, and the memory that the engine has now */
  compile(key: string, structure: AnswerStructure, limitMs: number): Promise<{ readonly ms: number; readonly bytes: number }> {
    return new Promise((resolve, reject) => {
      const take = (reply: GrammarReply) => {
        if (reply.type === 'compiled') resolve(reply);
        return true;
      };
      this.#ask((id) => ({ type: 'compile', id, key, structure }), { limitMs, take, fail: reject });
    });
  }

  look(look: Look, limitMs: number): LookResult {
    let failMasks: (error: Error) => void = () => {};
    let takeMasks: (masks: Int32Array) => void = () => {};
    const masks = new Promise<Int32Array>((resolve, reject) => {
      takeMasks = resolve;
      failMasks = reject;
    });
    const allowed = new Promise<number>((resolve, reject) => {
      const take = (reply: GrammarReply) => {
        if (reply.type === 'counted') resolve(reply.allowed);
        if (reply.type === 'masked') takeMasks(reply.masks);
        return reply.type === 'masked';
      };
      const fail = (error: Error) => {
        reject(error);
        failMasks(error);
      };
      this.#ask((id) => ({ type: 'look', id, ...look }), { limitMs, take, fail });
    });
    // Whoever asks may want only one of them.
    allowed.catch(() => {});
    masks.catch(() => {});
    return { allowed, masks };
  }

  close(matcher: number): void {
    this.#post({ type: 'close', matcher });
  }

  forget(key: string): void {
    this.#post({ type: 'forget', key });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end(new WorkerLost('The worker was disposed of'));
    await this.#ended;
  }

  #ask(request: (id: number) => GrammarRequest, pending: Pending): void {
    if (!this.alive) {
      pending.fail(new WorkerLost('The worker has ended'));
      return;
    }
    const id = this.#nextId++;
    this.#pending.set(id, pending);
    this.#post(request(id));
    if (this.#pending.size === 1) this.#watch();
  }

  #post(request: GrammarRequest): void {
    if (this.alive) this.#worker.postMessage(request);
  }

  #take(reply: GrammarReply): void {
    if (reply.type === 'ready') {
      this.#ready = true;
      this.#watch();
    } else if (reply.type === 'broken') {
      this.#end(new GrammarFault(reply.message, false));
    } else if (this.#pending.get(reply.id)?.take(reply)) {
      this.#pending.delete(reply.id);
      this.#watch();
    }
  }

  /** Starting is not counted: the machine may be slow, and the structure has no part in it. */
  #watch(): void {
    clearTimeout(this.#timer);
    const [first] = this.#pending.values();
    if (!this.#ready || first === undefined) return;
    this.#timer = setTimeout(() => {
      this.#end(new GrammarFault(`it took more than ${first.limitMs} ms`, true));
    }, first.limitMs);
  }

  /** The fault is that of the request being served, the first one. */
  #end(error: Error): void {
    if (!this.alive) return;
    clearTimeout(this.#timer);
    this.#ended = this.#worker.terminate();
    const [first, ...others] = this.#pending.values();
    this.#pending.clear();
    if (this.#ready) {
      first?.fail(error);
      for (const other of others) other.fail(new WorkerLost(error.message));
    } else {
      const notStarted = error instanceof GrammarFault;
      const failure = notStarted
        ? new AppError('internal', `expected a grammar worker to start, got "${error.message}"`)
        : error;
      for (const pending of [first, ...others]) pending?.fail(failure);
    }
  }
}
