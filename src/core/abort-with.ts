import { setMaxListeners } from 'node:events';

/**
 * Aborts the controller as soon as one of the signals does, until it is disposed of. Unlike `AbortSignal.any`, which is
 * remembered by a signal for as long as that one lives, it leaves nothing behind with a signal that outlives the work.
 */
export function abortWith(controller: AbortController, ...signals: readonly AbortSignal[]): Disposable {
  const abort = (event: Event) => controller.abort((event.target as AbortSignal).reason);
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted !== undefined) controller.abort(aborted.reason);
  else {
    // As many as there is work under way: Node warns of more than ten, as they would be a leak if nobody took them away.
    setMaxListeners(0, ...signals);
    for (const signal of signals) signal.addEventListener('abort', abort, { once: true });
  }
  return {
    [Symbol.dispose]() {
      for (const signal of signals) signal.removeEventListener('abort', abort);
    },
  };
}
