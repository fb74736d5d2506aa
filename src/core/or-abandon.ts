import { AbortedError } from './aborted-error.ts';

/**
 * What work comes to. When the signal aborts, the work gets some time to end; then it is left alone, with all that it uses.
 * @param what names the work
 * @param graceMs 0: it is left alone at once
 * @throws as the work does; AbortedError when it was left alone
 */
export async function orAbandon<Result>(
  what: string,
  work: Promise<Result>,
  signal: AbortSignal,
  graceMs = 0,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort = (): void => undefined;
  const abandoned = new Promise<never>((_, reject) => {
    const leaveAlone = () => reject(new AbortedError(what, signal.reason));
    onAbort = () => {
      if (graceMs === 0) leaveAlone();
      else timer = setTimeout(leaveAlone, graceMs);
    };
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, abandoned]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
  }
}
