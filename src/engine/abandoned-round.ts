/** A round that nobody waits for any more is not worth finishing. */

/** @returns a signal that aborts when the engine stops, or when all readers have left; until it is disposed of */
export function abandonedRound(
  stop: AbortSignal,
  readers: readonly AbortSignal[],
): Disposable & { readonly signal: AbortSignal } {
  const abandoned = new AbortController();
  const check = () => {
    if (stop.aborted || readers.every(({ aborted }) => aborted)) abandoned.abort();
  };
  // Not AbortSignal.any: what it makes stays known to a signal as old as the engine, and rounds are many.
  const signals = [stop, ...readers];
  for (const signal of signals) signal.addEventListener('abort', check, { once: true });
  return {
    signal: abandoned.signal,
    [Symbol.dispose]() {
      for (const signal of signals) signal.removeEventListener('abort', check);
    },
  };
}
