/** How many times as long something takes as it was measured to, by number of sequences. */
import { ofNearestCount } from './nearest-count.ts';

/** An observation this many times the estimate says more about the machine's other work than about what was observed. */
const OUTLIER = 2;

export class RunningScale {
  readonly #rate: number;
  readonly #startWeight: number;
  readonly #scales = new Map<number, { readonly value: number; readonly weight: number }>();

  /**
   * @param rate share of the newest observation, once there were many
   * @param startWeight observations that what is taken from another number of sequences counts for
   */
  constructor({ rate, startWeight }: { readonly rate: number; readonly startWeight: number }) {
    this.#rate = rate;
    this.#startWeight = startWeight;
  }

  /** Before a number of sequences was observed it is taken to be as the nearest one that was. */
  of(sequences: number): number {
    return ofNearestCount(this.#scales, sequences)?.value ?? 1;
  }

  observe(sequences: number, ratio: number): void {
    const scale = this.of(sequences);
    const weight = (this.#scales.get(sequences)?.weight ?? this.#startWeight) + 1;
    const value = scale + Math.max(1 / weight, this.#rate) * (Math.min(ratio, OUTLIER * scale) - scale);
    this.#scales.set(sequences, { value, weight });
  }

  forgetAbove(sequences: number): void {
    for (const count of this.#scales.keys()) if (count > sequences) this.#scales.delete(count);
  }
}
