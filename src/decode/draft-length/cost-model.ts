/** What a step and a draft cost, measured and kept up to date. */
import { ofNearestCount } from './nearest-count.ts';
import { RunningLine } from './running-line.ts';

/** A measured point: `ms` for a step of `rows` rows of one sequence, or for a draft of so many tokens. */
export interface CostPoint {
  readonly rows: number;
  readonly ms: number;
}

const AS_MEASURED = { first: 1, second: 1 };
/** Rows of a draft beside its tokens, for each sequence: the anchor's, and about one that is taken in. */
const ROWS_PER_DRAFT = 2;

/**
 * Time of a target step by its rows, and of a draft by its tokens.
 *
 * The shapes are measured at start with one sequence (cost grows about as base + slope · rows, with a kink at one row).
 * Later observations say, for each number of sequences, what the least step and draft cost, and rows beyond them: with more
 * sequences the base is shared, and a draft row costs nearly as much as any other. Longer contexts and a busier machine move
 * both all the time.
 */
export class CostModel {
  readonly #step: CostCurve;
  readonly #draft: CostCurve;
  readonly #steps = new Map<number, RunningLine>();
  readonly #drafts = new Map<number, RunningLine>();

  readonly #contextMs: number;

  /**
   * @param steps at least one point, rows ascending
   * @param drafts of one sequence, by tokens; at least one point
   * @param contextMs that a draft takes longer for each row that it takes in, beyond one of each sequence
   */
  constructor(steps: readonly CostPoint[], drafts: readonly CostPoint[], contextMs = 0) {
    this.#step = new CostCurve(steps);
    this.#draft = new CostCurve(drafts.map(({ rows, ms }) => ({ rows: rows + ROWS_PER_DRAFT, ms })));
    this.#contextMs = contextMs;
  }

  /** Milliseconds of a step of `rows` rows over `sequences` sequences, one of each at least. */
  stepMs(rows: number, sequences: number): number {
    return expected(this.#steps, sequences, this.#step.parts(rows, sequences));
  }

  /**
   * Milliseconds of a draft of `tokens` tokens, all together, for `sequences` sequences.
   * @param waiting rows that it takes in first, all together
   */
  draftMs(tokens: number, sequences: number, waiting = sequences): number {
    return expected(this.#drafts, sequences, this.#draftParts(tokens, sequences, waiting));
  }

  /** At least one token for each sequence, which takes in a row. */
  #draftParts(tokens: number, sequences: number, waiting: number): Parts {
    const [least, beyond] = this.#draft.parts(tokens + ROWS_PER_DRAFT * sequences, (1 + ROWS_PER_DRAFT) * sequences);
    return [least, beyond + this.#contextMs * Math.max(waiting - sequences, 0)];
  }

  /** Of a step that only decodes: rows of prompts cost differently. */
  observeStep(rows: number, sequences: number, ms: number): void {
    observe(this.#steps, sequences, this.#step.parts(rows, sequences), ms);
  }

  observeDraft(tokens: number, sequences: number, waiting: number, ms: number): void {
    observe(this.#drafts, sequences, this.#draftParts(tokens, sequences, waiting), ms);
  }
}

/** Straight between its points and beyond the last two. */
class CostCurve {
  readonly #points: readonly CostPoint[];

  constructor(points: readonly CostPoint[]) {
    // Whatever disturbs a measurement makes it longer, so fewer rows never cost more than more rows were measured to.
    let most = Number.POSITIVE_INFINITY;
    this.#points = points
      .toReversed()
      .map(({ rows, ms }) => {
        most = Math.min(most, ms);
        return { rows, ms: most };
      })
      .toReversed();
  }

  /** What the least number of rows costs, and what the others cost beyond it. */
  parts(rows: number, leastRows: number): Parts {
    const least = this.#at(leastRows);
    return [least, Math.max(this.#at(rows) - least, 0)];
  }

  #at(rows: number): number {
    const points = this.#points;
    const last = points.length - 1;
    const after = points.findIndex((point) => point.rows >= rows);
    if (after === 0 || last === 0) return (points[0] as CostPoint).ms;
    const right = points[after === -1 ? last : after] as CostPoint;
    const left = points[(after === -1 ? last : after) - 1] as CostPoint;
    return left.ms + ((right.ms - left.ms) * (rows - left.rows)) / (right.rows - left.rows);
  }
}

type Lines = Map<number, RunningLine>;
type Parts = readonly [least: number, beyond: number];

function expected(lines: Lines, sequences: number, parts: Parts): number {
  return line(lines, sequences, parts).at(...parts);
}

function observe(lines: Lines, sequences: number, parts: Parts, ms: number): void {
  lines.set(sequences, line(lines, sequences, parts).observed(...parts, ms));
}

/** Of this number of sequences; before it is known it is taken to be as that of the nearest one that is. */
function line(lines: Lines, sequences: number, [least]: Parts): RunningLine {
  return lines.get(sequences) ?? RunningLine.from(least, ofNearestCount(lines, sequences) ?? AS_MEASURED);
}
