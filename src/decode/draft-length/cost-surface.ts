/** Cost by rows and by number of sequences, from measured points. */

/** A measured point: `ms` for a step of `rows` rows, or for a draft of so many tokens, all sequences together. */
export interface CostPoint {
  readonly rows: number;
  readonly ms: number;
}

/**
 * Straight between the points of a number of sequences and beyond the last two, and between two numbers of sequences for the same rows
 * beyond the least. More sequences than were measured are taken for rows of those that were.
 */
export class CostSurface {
  readonly #leastRows: number;
  /** By number of sequences, ascending. */
  #curves: readonly (readonly [sequences: number, points: readonly CostPoint[]])[] = [];

  /** @param leastRows of each sequence */
  constructor(leastRows: number) {
    this.#leastRows = leastRows;
  }

  /** @param points at least one, in any order */
  add(sequences: number, points: readonly CostPoint[]): void {
    const others = this.#curves.filter(([count]) => count !== sequences);
    this.#curves = [...others, [sequences, rising(points)] as const].sort(([a], [b]) => a - b);
  }

  ms(rows: number, sequences: number): number {
    const curves = this.#curves;
    const above = curves.findIndex(([count]) => count >= sequences);
    if (above === -1) return at(curves[curves.length - 1]![1], rows);
    const beyond = rows - this.#leastRows * sequences;
    const on = ([count, points]: (typeof curves)[number]) => at(points, this.#leastRows * count + beyond);
    const right = curves[above]!;
    if (right[0] === sequences || above === 0) return on(right);
    const left = curves[above - 1]!;
    return on(left) + ((on(right) - on(left)) * (sequences - left[0])) / (right[0] - left[0]);
  }
}

/** Whatever disturbs a measurement makes it longer, so fewer rows never cost more than more rows were measured to. */
function rising(points: readonly CostPoint[]): CostPoint[] {
  let most = Number.POSITIVE_INFINITY;
  return points
    .toSorted((a, b) => b.rows - a.rows)
    .map(({ rows, ms }) => {
      most = Math.min(most, ms);
      return { rows, ms: most };
    })
    .reverse();
}

function at(points: readonly CostPoint[], rows: number): number {
  const last = points.length - 1;
  const after = points.findIndex((point) => point.rows >= rows);
  if (after === 0 || last === 0) return points[0]!.ms;
  const right = points[after === -1 ? last : after]!;
  const left = points[(after === -1 ? last : after) - 1]!;
  return left.ms + ((right.ms - left.ms) * (rows - left.rows)) / (right.rows - left.rows);
}
