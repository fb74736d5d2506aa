/** Puts NaN among the logits of a served target, and knows whose end that has to be. */
import { AppError } from '../../src/core/app-error.ts';
import type { SequenceOutcome } from '../../src/decode/round.ts';
import type { GenerateRequest } from '../../src/engine/engine.ts';
import { RunningRequest } from '../../src/engine/running-request.ts';
import type { SequenceCache, StepResult, StepSpan, Target } from '../../src/target/target.ts';

interface NanRow {
  readonly draft: readonly number[];
  /** Draft tokens that have to be accepted before anybody chooses by this row. */
  readonly behind: number;
}

/**
 * In one of so many steps there is a NaN: by turns in the first row of every other sequence, which is chosen by, and in the
 * last row of every draft, which is not when the draft is refused before it. Which requests must end by it follows from the
 * tokens that were emitted, and not from what the engine says of it.
 */
export class NanRows implements Disposable {
  /** Requests that had to end by a NaN, and did. */
  ended = 0;
  /** Rows with a NaN that nobody chose by. */
  passedOver = 0;
  /** Requests that ended by a NaN, and should have gone on. */
  readonly wrong: string[] = [];
  /** Requests that failed, but not by NaN. */
  otherFailures = 0;
  readonly #rows = new Map<SequenceCache, NanRow>();
  readonly #mustEnd = new Set<GenerateRequest>();
  readonly #restore: () => void;

  constructor(target: Target, everySteps: number) {
    const { step } = target;
    const { deliver, fail } = RunningRequest.prototype;
    const nans = this;
    let steps = 0;
    target.step = async (spans, signal) => {
      this.#rows.clear();
      const result = await step.call(target, spans, signal);
      if (++steps % everySteps === 0) this.#poison(spans, result, steps / everySteps);
      return result;
    };
    RunningRequest.prototype.deliver = function (outcome) {
      nans.#judge(this.request, outcome);
      deliver.call(this, outcome);
    };
    RunningRequest.prototype.fail = function (error) {
      nans.#noteFailure(this.request, error);
      return fail.call(this, error);
    };
    this.#restore = () => {
      target.step = step;
      Object.assign(RunningRequest.prototype, { deliver, fail });
    };
  }

  /** Requests that should have ended by a NaN, and went on. */
  get survivors(): number {
    return this.#mustEnd.size;
  }

  #poison(spans: readonly StepSpan[], result: StepResult, turn: number): void {
    for (const [index, { cache, tokens, logitsFrom }] of spans.entries()) {
      const draft = tokens.slice(logitsFrom + 1);
      const behind = turn % 2 === 0 ? draft.length : 0;
      // Somebody has to go on; and nobody chooses by the rows of a prompt that does not end in this step.
      if (turn % 2 === 0 ? draft.length === 0 : index % 2 === (turn >> 1) % 2 || logitsFrom === tokens.length) continue;
      const logits = result.logits(index, logitsFrom + behind);
      logits[turn % logits.length] = Number.NaN;
      this.#rows.set(cache, { draft, behind });
    }
  }

  #judge(request: GenerateRequest, { sequence, emitted }: SequenceOutcome): void {
    const row = this.#rows.get(sequence.cache);
    if (row === undefined) return;
    const { draft, behind } = row;
    const reached = emitted.length >= behind && draft.slice(0, behind).every((token, i) => token === emitted[i]);
    const endedBefore = sequence.ending !== null && emitted.length === behind;
    if (reached && !endedBefore) this.#mustEnd.add(request);
    else this.passedOver++;
  }

  #noteFailure(request: GenerateRequest, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (!(error instanceof AppError && error.code === 'internal' && message.includes('got NaN at'))) {
      this.otherFailures++;
      // It may have failed in the same round before anybody looked at its rows.
      this.#mustEnd.delete(request);
    } else if (this.#mustEnd.delete(request)) this.ended++;
    else this.wrong.push(`${request.id}: ${message}`);
  }

  [Symbol.dispose](): void {
    this.#restore();
  }
}
