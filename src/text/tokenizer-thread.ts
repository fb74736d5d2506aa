/** Runs in a worker: encodes what would keep the event loop for long. */
import { parentPort, workerData } from 'node:worker_threads';
import { type EncodeOptions, loadTokenizer } from './tokenizer.ts';

export interface EncodeRequest {
  readonly texts: readonly string[];
  readonly options: EncodeOptions;
}

/** Replies come in the order of the requests. */
export interface EncodeReply {
  /** Of each text. */
  readonly ids: readonly Uint32Array<ArrayBuffer>[];
}

const tokenizer = await loadTokenizer(workerData as string);
parentPort?.on('message', ({ texts, options }: EncodeRequest) => {
  const ids = texts.map((text) => Uint32Array.from(tokenizer.encode(text, options)));
  const buffers = ids.map(({ buffer }) => buffer);
  parentPort?.postMessage({ ids } satisfies EncodeReply, buffers);
});
