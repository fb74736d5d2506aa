/** Timers, sockets and requests of a script: an iteration lasts until there are none. */
export class PendingWork {
  #count = 0;
  readonly #waiting: (() => void)[] = [];
  #error: { readonly thrown: unknown } | null = null;

  /** @returns what to call, once or more often, when the work is done */
  begin(): () => void {
    this.#count += 1;
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      this.#count -= 1;
      // What the work's own handlers begin still belongs to it.
      if (this.#count === 0) setImmediate(() => this.#settle());
    };
  }

  /** Runs a callback of the script; what it throws fails the iteration. */
  call(callback: () => unknown): void {
    try {
      const result = callback();
      if (result instanceof Promise) result.catch((thrown: unknown) => this.#fail(thrown));
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** Rejects with what a callback has thrown. */
  async idle(): Promise<void> {
    if (this.#count > 0 && this.#error === null) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const error = this.#error;
    this.#error = null;
    if (error !== null) throw error.thrown;
  }

  #fail(thrown: unknown): void {
    this.#error ??= { thrown };
    this.#release();
  }

  #settle(): void {
    if (this.#count === 0) this.#release();
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
