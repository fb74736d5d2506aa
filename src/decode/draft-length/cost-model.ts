/** What a step and a draft cost, measured and kept up to date. */
import { type CostPoint, CostSurface } from './cost-surface.ts';
import { RunningScale } from './running-scale.ts';

/** Rows of a draft beside its tokens, for each sequence: the anchor's, and about one that is taken in. */
const ROWS_PER_DRAFT = 2;
/** Contexts grow, and other work on the machine comes and goes. */
const BUSY = { rate: 0.04, startWeight: 4 };
/** Far slower, or a machine that gets busier while every step has drafts would be taken for it. */
const BESIDE_DRAFTS = { rate: 0.003, startWeight: 300 };

/**
 * Time of a target step by its rows, and of a draft by its tokens, for each number of sequences.
 *
 * How cost grows with rows is measured while nothing else runs, and believed: in service the rows of steps hardly vary, and what
 * a row adds would be lost in what the machine's other work adds. Observations say by how much everything takes longer
 * than it was measured to, for each number of sequences: longer contexts and a busier machine move that all the time. And by
 * how much steps with draft tokens take longer than that again: they find caches cold that the drafter has used, and more of what
 * the process does with tokens falls into their time.
 */
export class CostModel {
  readonly #steps = new CostSurface(1);
  readonly #drafts = new CostSurface(1 + ROWS_PER_DRAFT);
  readonly #stepScale = new RunningScale(BUSY);
  readonly #besideDrafts = new RunningScale(BESIDE_DRAFTS);
  readonly #draftScale = new RunningScale(BUSY);
  readonly #contextMs: number;

  /**
   * @param steps of one sequence; at least one point
   * @param drafts of one sequence, by tokens; at least one point
   * @param contextMs that a draft takes longer for each row that it takes in, beyond one of each sequence
   */
  constructor(steps: readonly CostPoint[], drafts: readonly CostPoint[], contextMs = 0) {
    this.#contextMs = contextMs;
    this.measured(1, steps, drafts);
  }

  /**
   * Adds what was measured with so many sequences, all alike.
   * @param drafts by tokens, all together
   */
  measured(sequences: number, steps: readonly CostPoint[], drafts: readonly CostPoint[]): void {
    this.#steps.add(sequences, steps);
    this.#drafts.add(
      sequences,
      drafts.map(({ rows, ms }) => ({ rows: rows + ROWS_PER_DRAFT * sequences, ms })),
    );
    // What was seen of more sequences than were measured was compared with a guess.
    this.#stepScale.forgetAbove(1);
    this.#besideDrafts.forgetAbove(1);
    this.#draftScale.forgetAbove(1);
  }

  /** Milliseconds of a step of `rows` rows over `sequences` sequences, one of each at least. */
  stepMs(rows: number, sequences: number): number {
    const besideDrafts = rows > sequences ? this.#besideDrafts.of(sequences) : 1;
    return this.#stepScale.of(sequences) * besideDrafts * this.#steps.ms(rows, sequences);
  }

  /**
   * Milliseconds of a draft of `tokens` tokens, all together, for `sequences` sequences.
   * @param waiting rows that it takes in first, all together
   */
  draftMs(tokens: number, sequences: number, waiting = sequences): number {
    return this.#draftScale.of(sequences) * this.#asMeasured(tokens, sequences, waiting);
  }

  /** Of a step that only decodes: rows of prompts cost differently. */
  observeStep(rows: number, sequences: number, ms: number): void {
    const scale = ms / this.#steps.ms(rows, sequences);
    const besideDrafts = rows > sequences ? this.#besideDrafts.of(sequences) : 1;
    if (rows > sequences) this.#besideDrafts.observe(sequences, scale / this.#stepScale.of(sequences));
    this.#stepScale.observe(sequences, scale / besideDrafts);
  }

  observeDraft(tokens: number, sequences: number, waiting: number, ms: number): void {
    this.#draftScale.observe(sequences, ms / this.#asMeasured(tokens, sequences, waiting));
  }

  #asMeasured(tokens: number, sequences: number, waiting: number): number {
    return this.#drafts.ms(tokens + ROWS_PER_DRAFT * sequences, sequences) + this.#contextMs * Math.max(waiting - sequences, 0);
  }
}
