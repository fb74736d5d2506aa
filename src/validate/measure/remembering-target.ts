import type { RecurrentFacts, SequenceCache, StepResult, StepSpan, Target, TargetFacts } from '../../target/target.ts';

/** The rows of one sequence in the last step. */
export interface LastRows {
  readonly span: number;
  /** Index of the first row with logits. */
  readonly logitsFrom: number;
  readonly result: StepResult;
}

/** Passes everything on, and remembers the last step's result for whoever looks at it before the next one. Not an owner. */
export class RememberingTarget implements Target {
  readonly facts: TargetFacts;
  readonly maxSequences: number;
  readonly maxRows: number;
  readonly cacheBytesPerPosition: number;
  readonly recurrent?: RecurrentFacts;
  readonly #inner: Target;
  #spans: readonly StepSpan[] = [];
  #result: StepResult | null = null;

  constructor(inner: Target) {
    this.#inner = inner;
    this.facts = inner.facts;
    this.maxSequences = inner.maxSequences;
    this.maxRows = inner.maxRows;
    this.cacheBytesPerPosition = inner.cacheBytesPerPosition;
    if (inner.recurrent !== undefined) this.recurrent = inner.recurrent;
  }

  openCache(): SequenceCache {
    return this.#inner.openCache();
  }

  async step(spans: readonly StepSpan[], signal?: AbortSignal): Promise<StepResult> {
    this.#result = null;
    const result = await this.#inner.step(spans, signal);
    this.#spans = spans;
    this.#result = result;
    return result;
  }

  /** Null when the sequence had no part in the last step. */
  last(cache: SequenceCache): LastRows | null {
    const span = this.#spans.findIndex((candidate) => candidate.cache === cache);
    if (span < 0 || this.#result === null) return null;
    return { span, logitsFrom: (this.#spans[span] as StepSpan).logitsFrom, result: this.#result };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
