/** What steps and drafts cost over a whole measurement. */
import type { CostModel } from '../../decode/draft-length/cost-model.ts';
import type { StepReport } from '../../engine/engine.ts';

export type ObservedStep = Pick<StepReport, 'decodeRows' | 'durationMs' | 'draftMs'>;

/**
 * Means over all steps of a measurement, so that a prediction made from them stands beside the speed that was measured over the
 * same steps: a machine that was busy for a part of it slows both alike. A model that follows the latest steps, as serving has it,
 * would compare the speculative steps of one moment with the plain ones of another.
 *
 * Rows and drafts that hardly occurred lie on the curves that were measured with one sequence before, which are scaled.
 */
export class ObservedCosts {
  readonly #plainMs: number;
  /** Milliseconds of a step beyond one row, for each unit of its shape. */
  readonly #slope: number;
  readonly #draftScale: number;
  readonly #beyond: (rows: number) => number;
  readonly #before: CostModel;

  /** @param steps of one sequence each, with and without draft tokens */
  constructor(before: CostModel, steps: readonly ObservedStep[]) {
    const plain = steps.filter(({ decodeRows }) => decodeRows === 1);
    const drafted = steps.filter(({ decodeRows }) => decodeRows > 1);
    const most = Math.max(...drafted.map(({ decodeRows }) => decodeRows), 2);
    const first = before.stepMs(1, 1);
    // Measured in a busy moment a curve may come out level, and then tells nothing of how rows share their cost.
    const level = before.stepMs(most, 1) <= first;
    this.#before = before;
    this.#beyond = (rows) => (level ? rows - 1 : before.stepMs(rows, 1) - first);
    this.#plainMs = plain.length === 0 ? first : sum(plain, ({ durationMs }) => durationMs) / plain.length;
    const units = sum(drafted, ({ decodeRows }) => this.#beyond(decodeRows));
    const beyondMs = sum(drafted, ({ durationMs }) => durationMs - this.#plainMs);
    this.#slope = units === 0 ? 1 : Math.max(beyondMs / units, 0);
    const expectedMs = sum(drafted, ({ decodeRows }) => before.draftMs(decodeRows - 1, 1));
    this.#draftScale = expectedMs === 0 ? 1 : sum(drafted, ({ draftMs }) => draftMs) / expectedMs;
  }

  /** Milliseconds of a step of so many rows of one sequence. */
  stepMs(rows: number): number {
    return this.#plainMs + this.#slope * this.#beyond(rows);
  }

  /** Milliseconds of a draft of so many tokens, at least one. */
  draftMs(tokens: number): number {
    return this.#draftScale * this.#before.draftMs(tokens, 1);
  }
}

function sum<Value>(values: readonly Value[], of: (value: Value) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
