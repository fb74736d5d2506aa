/** Hands values from the one who makes them, and is never held back, to the one who waits for them. */
export class EventChannel<T> implements AsyncIterable<T> {
  readonly #values: T[] = [];
  #outcome: { readonly error: unknown } | 'closed' | null = null;
  #wake: (() => void) | null = null;

  push(value: T): void {
    this.#values.push(value);
    this.#wake?.();
  }

  /** No more values will come. */
  close(): void {
    this.#outcome ??= 'closed';
    this.#wake?.();
  }

  /** No more values will come, and the reader is told why. */
  fail(error: unknown): void {
    this.#outcome ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (;;) {
      while (this.#values.length > 0) yield this.#values.shift() as T;
      if (this.#outcome === 'closed') return;
      if (this.#outcome !== null) throw this.#outcome.error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
  }
}
