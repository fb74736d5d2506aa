const LONGEST_MS = 1;

/**
 * Keeps the event loop live through work that has to be done on it, such as draws from large vocabularies, which take a
 * millisecond each.
 * @returns to be awaited between pieces of the work; it gives others their turn once {@link LONGEST_MS} have gone by
 */
export function breather(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < LONGEST_MS) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        since = performance.now();
        resolve();
      });
    });
  };
}
