/** What a step and a draft cost, measured and kept up to date. */

/** A measured point: `ms` for a step of `rows` rows of one sequence. */
export interface StepPoint {
  readonly rows: number;
  readonly ms: number;
}

/** Share of a new observation in a running estimate. */
const RATE = 0.05;
/** An observation this many times the estimate says more about the machine's other work than about the step. */
const OUTLIER = 3;

/**
 * Time of a target step by its rows, and of a draft by the sequences it serves.
 *
 * The shape over rows is measured at start (cost grows about as base + slope · rows, with a kink at one row); later
 * observations move the whole curve, by the number of sequences in the step, since longer contexts, more slots and a
 * busier machine slow all row counts alike.
 */
export class CostModel {
  readonly #points: readonly StepPoint[];
  /** Observed over predicted, by sequences. */
  readonly #scale = new Map<number, number>();
  /** Milliseconds of a draft, by sequences. */
  readonly #draftMs = new Map<number, number>();
  readonly #firstDraftMs: number;

  /**
   * @param points at least one, rows ascending
   * @param draftMs of a draft for one sequence
   */
  constructor(points: readonly StepPoint[], draftMs: number) {
    // A measurement may find a larger step cheaper by chance; a model that believes it would ask for it.
    let least = 0;
    this.#points = points.map(({ rows, ms }) => {
      least = Math.max(least, ms);
      return { rows, ms: least };
    });
    this.#firstDraftMs = draftMs;
  }

  /** Milliseconds of a step of `rows` rows over `sequences` sequences. */
  stepMs(rows: number, sequences: number): number {
    return this.#shape(rows) * (this.#scale.get(sequences) ?? this.#nearestScale(sequences));
  }

  /** Milliseconds of a draft for `sequences` sequences. */
  draftMs(sequences: number): number {
    const known = this.#draftMs.get(sequences);
    if (known !== undefined) return known;
    let nearest = { sequences: 1, ms: this.#draftMs.get(1) ?? this.#firstDraftMs };
    for (const [count, ms] of this.#draftMs) {
      if (Math.abs(count - sequences) < Math.abs(nearest.sequences - sequences)) nearest = { sequences: count, ms };
    }
    return nearest.ms;
  }

  observeStep(rows: number, sequences: number, ms: number): void {
    const scale = this.#scale.get(sequences) ?? this.#nearestScale(sequences);
    const seen = ms / this.#shape(rows);
    this.#scale.set(sequences, scale + RATE * (Math.min(seen, OUTLIER * scale) - scale));
  }

  observeDraft(sequences: number, ms: number): void {
    const estimate = this.draftMs(sequences);
    this.#draftMs.set(sequences, estimate + RATE * (Math.min(ms, OUTLIER * estimate) - estimate));
  }

  /** The measured curve, straight between its points and beyond the last two. */
  #shape(rows: number): number {
    const points = this.#points;
    const last = points.length - 1;
    const after = points.findIndex((point) => point.rows >= rows);
    if (after === 0 || last === 0) return (points[0] as StepPoint).ms;
    const right = points[after === -1 ? last : after] as StepPoint;
    const left = points[(after === -1 ? last : after) - 1] as StepPoint;
    return left.ms + ((right.ms - left.ms) * (rows - left.rows)) / (right.rows - left.rows);
  }

  #nearestScale(sequences: number): number {
    let nearest: number | null = null;
    let scale = 1;
    for (const [count, value] of this.#scale) {
      if (nearest !== null && Math.abs(count - sequences) >= Math.abs(nearest - sequences)) continue;
      nearest = count;
      scale = value;
    }
    return scale;
  }
}
