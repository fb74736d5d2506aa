/** Runs in a worker: encodes what would keep the event loop for long. */
import { parentPort, workerData } from 'node:worker_threads';
import { type EncodeOptions, loadTokenizer } from './tokenizer.ts';

export interface EncodeRequest {
  readonly id: number;
  readonly text: string;
  readonly options: EncodeOptions;
}

export interface EncodeReply {
  readonly id: number;
  readonly ids: Uint32Array<ArrayBuffer>;
}

const tokenizer = await loadTokenizer(workerData as string);
parentPort?.on('message', ({ id, text, options }: EncodeRequest) => {
  const ids = Uint32Array.from(tokenizer.encode(text, options));
  parentPort?.postMessage({ id, ids } satisfies EncodeReply, [ids.buffer]);
});
