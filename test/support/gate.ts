/** A door that is shut until a test opens it. */
export class Gate {
  #open!: () => void;
  /** Resolves when the gate is open. */
  readonly opened: Promise<void> = new Promise((resolve) => {
    this.#open = resolve;
  });

  open(): void {
    this.#open();
  }
}
