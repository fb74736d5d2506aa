/** A virtual user, seen from the test: a thread that runs one function of the script at a time. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { AppError } from '../core/app-error.ts';
import { exchange, type HttpAgents, httpAgents } from './http-exchange.ts';
import type { FromVu, Job, RequestMessage, ScriptError, VuInfo, VuStart } from './vu/protocol.ts';

/** Requests of one `batch` that are under way at a time. */
const BATCH_AT_ONCE = 20;

/** Whatever a thread says beside the ends of its jobs. */
export type VuMessage = Exclude<FromVu, { type: 'ready' | 'failed' | 'done' }>;

export interface VirtualUserOptions extends Omit<VuStart, 'requests' | 'answered'> {
  /** Code of the thread. */
  readonly workerCode: string;
  readonly keepConnections: boolean;
  readonly onMessage: (message: VuMessage) => void;
  /** Its thread has ended though nobody has closed it: its memory ran out, or it threw where no iteration could catch it. */
  readonly onDeath: (error: Error) => void;
}

export interface JobOutcome {
  readonly result: unknown;
  readonly error: ScriptError | null;
  /** It was cut short from outside. */
  readonly interrupted: boolean;
}

const INTERRUPTED: JobOutcome = { result: undefined, error: null, interrupted: true };

export class VirtualUser {
  readonly info: VuInfo;
  readonly #worker: Worker;
  readonly #agents: HttpAgents;
  #finish: ((outcome: JobOutcome) => void) | null = null;
  #isClosed = false;

  private constructor(worker: Worker, agents: HttpAgents, info: VuInfo) {
    this.#worker = worker;
    this.#agents = agents;
    this.info = info;
  }

  /** @throws AppError `invalid_config` when the script's init code fails */
  static async open(options: VirtualUserOptions): Promise<VirtualUser> {
    const { workerCode, keepConnections, onMessage, onDeath, ...start } = options;
    const { port1, port2 } = new MessageChannel();
    const answered = new SharedArrayBuffer(4);
    const agents = httpAgents(keepConnections);
    answerRequests(port1, new Int32Array(answered), agents);
    const data: VuStart = { ...start, requests: port2, answered };
    const worker = new Worker(workerCode, { eval: true, workerData: data, transferList: [port2], execArgv: [] });
    return new Promise((resolve, reject) => {
      let user: VirtualUser | null = null;
      const end = (error: Error) => {
        port1.close();
        agents[Symbol.dispose]();
        if (user === null) {
          reject(error);
          return;
        }
        if (!user.#isClosed) {
          user.#isClosed = true;
          onDeath(error);
        }
        user.#end(INTERRUPTED);
      };
      worker.once('error', end);
      worker.once('exit', () => end(new AppError('internal', 'The thread of a virtual user has ended')));
      worker.on('message', (message: FromVu) => {
        switch (message.type) {
          case 'ready':
            user = new VirtualUser(worker, agents, message.info);
            resolve(user);
            break;
          case 'failed':
            reject(new AppError('invalid_config', `The script failed at its start: ${message.error.message}`));
            void worker.terminate();
            break;
          case 'done':
            if (user !== null) user.#end({ result: message.result, error: message.error, interrupted: false });
            break;
          default:
            onMessage(message);
        }
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** One at a time. */
  run(job: Job): Promise<JobOutcome> {
    if (this.#isClosed) return Promise.resolve(INTERRUPTED);
    return new Promise((resolve) => {
      this.#finish = resolve;
      this.#worker.postMessage(job);
    });
  }

  /** Ends what runs, and the thread. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker.terminate();
    this.#agents[Symbol.dispose]();
  }

  #end(outcome: JobOutcome): void {
    const finish = this.#finish;
    this.#finish = null;
    finish?.(outcome);
  }
}

function answerRequests(port: MessagePort, answered: Int32Array, agents: HttpAgents): void {
  const answer = async ({ id, calls }: RequestMessage) => {
    const results = new Array(calls.length);
    let next = 0;
    const lane = async () => {
      while (next < calls.length) {
        const index = next++;
        results[index] = await exchange(calls[index]!, agents);
      }
    };
    await Promise.all(Array.from({ length: Math.min(calls.length, BATCH_AT_ONCE) }, lane));
    port.postMessage({ id, results });
    // Wakes the thread when it sleeps until there is an answer.
    Atomics.add(answered, 0, 1);
    Atomics.notify(answered, 0);
  };
  port.on('message', (message: RequestMessage) => void answer(message));
}
