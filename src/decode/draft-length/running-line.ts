/** A cost that is `first · a + second · b`, fitted to the latest observations of it. */

/** Older observations fade: contexts grow, and other work on the machine comes and goes. */
const FORGET = 0.96;
/** An observation this many times the estimate says more about the machine's other work than about the line. */
const OUTLIER = 2;
/** Observations that the line started from counts for. */
const START_WEIGHT = 10;
/** How strongly both coefficients are held together, against observations that cannot tell them apart. */
const TOGETHER = 0.05;

/**
 * Least squares with forgetting, and a ridge on the difference of the coefficients: as long as one kind of observation is
 * all that comes, both move alike. Immutable.
 */
export class RunningLine {
  readonly first: number;
  readonly second: number;
  readonly #aa: number;
  readonly #ab: number;
  readonly #bb: number;
  readonly #ay: number;
  readonly #by: number;

  private constructor(aa: number, ab: number, bb: number, ay: number, by: number, ridge: number) {
    this.#aa = aa;
    this.#ab = ab;
    this.#bb = bb;
    this.#ay = ay;
    this.#by = by;
    const determinant = (aa + ridge) * (bb + ridge) - (ab - ridge) ** 2;
    this.first = Math.max(((bb + ridge) * ay - (ab - ridge) * by) / determinant, 0);
    this.second = Math.max(((aa + ridge) * by - (ab - ridge) * ay) / determinant, 0);
  }

  /** @param a of a typical observation */
  static from(a: number, { first, second }: { readonly first: number; readonly second: number }): RunningLine {
    const weight = START_WEIGHT * a ** 2;
    // As if half of them had been made without b, and half with as much of it as of a.
    const both = (weight / 2) * (first + second);
    return new RunningLine(weight, weight / 2, weight / 2, (weight / 2) * first + both, both, TOGETHER * a ** 2);
  }

  at(a: number, b: number): number {
    return this.first * a + this.second * b;
  }

  observed(a: number, b: number, seen: number): RunningLine {
    const value = Math.min(seen, OUTLIER * this.at(a, b));
    return new RunningLine(
      FORGET * this.#aa + a * a,
      FORGET * this.#ab + a * b,
      FORGET * this.#bb + b * b,
      FORGET * this.#ay + a * value,
      FORGET * this.#by + b * value,
      TOGETHER * a ** 2,
    );
  }
}
