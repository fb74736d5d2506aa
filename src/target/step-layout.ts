import { AppError } from '../core/app-error.ts';
import { attendedRows, LEAST_SLOT_ROWS } from './attended-rows.ts';
import type { StepSpan } from './target.ts';

/** Where the rows of a step stand: in the flat list of tokens, in the slots, and among the wanted logits. */
export class StepLayout {
  readonly spans: readonly StepSpan[];
  readonly rows: number;
  readonly wantedRows: number;
  /** For each row, where its attention stands among all slots' rows. */
  readonly attended: BigInt64Array;
  /** The wanted rows; one row is computed for nothing when none is wanted, as a graph has no empty outputs. */
  readonly logitRows: BigInt64Array;
  /**
   * The rows of the spans that may be cut back to the middle: of those with rows behind the first wanted one, which are
   * there to be verified. One row for nothing when there are none.
   */
  readonly recordedRows: BigInt64Array;
  readonly #recordedFrom: readonly (number | null)[];
  readonly #headDim: number;
  readonly #firstRows: readonly number[];
  readonly #firstLogits: readonly number[];

  /** @param headDim of the attention layers */
  constructor(spans: readonly StepSpan[], slots: number, headDim: number) {
    this.spans = spans;
    this.#headDim = headDim;
    const firstRows: number[] = [];
    const firstLogits: number[] = [];
    const attended: bigint[] = [];
    const logitRows: bigint[] = [];
    const recordedRows: bigint[] = [];
    const recordedFrom: (number | null)[] = [];
    let rows = 0;
    let slotRows = 0;
    for (let slot = 0; slot < slots; slot++) {
      const span = spans[slot];
      if (span === undefined) break;
      firstRows.push(rows);
      firstLogits.push(logitRows.length);
      const recorded = span.logitsFrom + 1 < span.tokens.length;
      recordedFrom.push(recorded ? recordedRows.length : null);
      for (let row = 0; row < span.tokens.length; row++) {
        attended.push(BigInt(slotRows + row));
        if (row >= span.logitsFrom) logitRows.push(BigInt(rows + row));
        if (recorded) recordedRows.push(BigInt(rows + row));
      }
      rows += span.tokens.length;
      slotRows += this.#attendedRows(span);
    }
    if (logitRows.length === 0) logitRows.push(0n);
    if (recordedRows.length === 0) recordedRows.push(0n);
    this.rows = rows;
    this.wantedRows = logitRows.length;
    this.attended = BigInt64Array.from(attended);
    this.logitRows = BigInt64Array.from(logitRows);
    this.recordedRows = BigInt64Array.from(recordedRows);
    this.#recordedFrom = recordedFrom;
    this.#firstRows = firstRows;
    this.#firstLogits = firstLogits;
  }

  #attendedRows({ tokens, cache }: StepSpan): number {
    return attendedRows(tokens.length, cache.length, this.#headDim);
  }

  firstRow(span: number): number {
    return this.#firstRows[span] as number;
  }

  logitRow(span: number, row: number): number {
    const wanted = row - (this.spans[span] as StepSpan).logitsFrom;
    if (wanted < 0) throw new AppError('internal', `The logits of row ${row} of span ${span} were not asked for`);
    return (this.#firstLogits[span] as number) + wanted;
  }

  /** Where a span's rows begin among the recorded ones; null when they are not. */
  recordedFrom(span: number): number | null {
    return this.#recordedFrom[span] ?? null;
  }

  /** The rows of a slot, each once; a slot without a sequence takes the first row of the step. */
  ownRows(slot: number): BigInt64Array {
    const span = this.spans[slot];
    if (span === undefined) return new BigInt64Array(1);
    const first = this.#firstRows[slot] as number;
    return BigInt64Array.from({ length: span.tokens.length }, (_, row) => BigInt(first + row));
  }

  /** The rows a slot attends with; the last may stand several times. A slot without a sequence takes the first row of the step. */
  slotRows(slot: number): BigInt64Array {
    const span = this.spans[slot];
    if (span === undefined) return new BigInt64Array(LEAST_SLOT_ROWS);
    const first = this.#firstRows[slot] as number;
    const length = this.#attendedRows(span);
    return BigInt64Array.from({ length }, (_, row) => BigInt(first + Math.min(row, span.tokens.length - 1)));
  }
}
