/** How much of a step prompts may take while answers are being streamed. */

/** Share of a new observation in a running estimate. */
const RATE = 0.2;
/** Prompts come to their end however slow the machine is. */
const LEAST_ROWS = 16;

/**
 * Bounds the gap between two deliveries of a running answer: rows of prompts that share its steps lengthen them.
 *
 * The time of a step is taken as what it takes without prompts plus so much for each of their rows. Both are learned from
 * the steps themselves, so that the bound follows the number of answers, their contexts and the machine's other work.
 */
export class StepPacer {
  readonly #maxStepMs: number;
  #decodeMs = 0;
  #promptRowMs: number | null = null;

  /**
   * @param maxStepMs that a step should take at most while answers are being streamed, its drafts and what is done with its
   *   rows included; where decoding takes more than half of it, prompts may double the step
   */
  constructor(maxStepMs: number) {
    this.#maxStepMs = maxStepMs;
  }

  /** Rows for prompts in a step that decodes as well. */
  promptRows(): number {
    if (this.#promptRowMs === null) return LEAST_ROWS;
    // Where decoding alone fills the step, prompts get as much time as it does, or they would take ever longer.
    const ms = Math.max(this.#maxStepMs - this.#decodeMs, this.#decodeMs);
    return Math.max(Math.floor(ms / this.#promptRowMs), LEAST_ROWS);
  }

  /**
   * Told of every step.
   * @param promptRows of its rows
   * @param decodes whether other rows were in it
   */
  observe(promptRows: number, decodes: boolean, ms: number): void {
    if (promptRows === 0) {
      this.#decodeMs = this.#decodeMs === 0 ? ms : mix(this.#decodeMs, ms);
      return;
    }
    // A short prompt says little about the price of a row; taken by itself, it pays for the whole step.
    if (promptRows < LEAST_ROWS) return;
    const rowMs = Math.max(ms - (decodes ? this.#decodeMs : 0), 0) / promptRows;
    this.#promptRowMs = this.#promptRowMs === null ? rowMs : mix(this.#promptRowMs, rowMs);
  }
}

function mix(estimate: number, seen: number): number {
  return estimate + RATE * (seen - estimate);
}
