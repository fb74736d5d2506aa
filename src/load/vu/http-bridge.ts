/** Requests are made by the test's own thread, so that a script can wait for one without an event loop, as `http.get` does. */
import { receiveMessageOnPort } from 'node:worker_threads';
import type { PendingWork } from './pending-work.ts';
import type { AnswerMessage, HttpCall, HttpResult, VuStart } from './protocol.ts';

export class HttpBridge {
  readonly #port: VuStart['requests'];
  readonly #answered: Int32Array;
  readonly #waiting = new Map<number, (results: readonly HttpResult[]) => void>();
  #next = 0;

  constructor({ requests, answered }: Pick<VuStart, 'requests' | 'answered'>) {
    this.#port = requests;
    this.#answered = new Int32Array(answered);
    requests.on('message', (message: AnswerMessage) => this.#deliver(message));
    // Waiting for answers is what iterations do; an idle port keeps no thread alive.
    requests.unref();
  }

  /** Blocks this thread until all are answered. */
  sync(calls: readonly HttpCall[]): readonly HttpResult[] {
    const id = this.#send(calls);
    for (;;) {
      const seen = Atomics.load(this.#answered, 0);
      const received = receiveMessageOnPort(this.#port) as { readonly message: AnswerMessage } | undefined;
      if (received === undefined) Atomics.wait(this.#answered, 0, seen);
      else if (received.message.id === id) return received.message.results;
      else this.#deliver(received.message);
    }
  }

  async(calls: readonly HttpCall[], pending: PendingWork): Promise<readonly HttpResult[]> {
    const done = pending.begin();
    const id = this.#send(calls);
    return new Promise((resolve) => {
      this.#waiting.set(id, (results) => {
        resolve(results);
        done();
      });
    });
  }

  #send(calls: readonly HttpCall[]): number {
    const id = this.#next++;
    this.#port.postMessage({ id, calls });
    return id;
  }

  #deliver({ id, results }: AnswerMessage): void {
    this.#waiting.get(id)?.(results);
    this.#waiting.delete(id);
  }
}
