/** Runs the target over prompts and keeps its answers with the residual stream after every layer. */
import { AbortedError } from '../../core/aborted-error.ts';
import { AppError } from '../../core/app-error.ts';
import type { TokenId } from '../../core/token.ts';
import type { SequenceCache, StepResult, Target } from '../../target/target.ts';
import type { RecordedSequence } from './recorded-sequence.ts';

/** A sequence to record. */
export interface SequenceToRecord {
  readonly id: string;
  readonly category: string;
  readonly promptTokens: readonly TokenId[];
  /** The answer to record; null: the target's own greedy one. */
  readonly answer: readonly TokenId[] | null;
}

export interface RecordAnswersOptions {
  /** With all layers tapped. */
  readonly target: Target;
  readonly sequences: readonly SequenceToRecord[];
  /** Longest answer, the end mark included. */
  readonly maxTokens: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * @returns in the order of `sequences`; a sequence that has no room for an answer in the context is left out
 * @throws AppError `aborted`, or what the target reports
 */
export async function recordAnswers(options: RecordAnswersOptions): Promise<readonly RecordedSequence[]> {
  const { target, sequences, maxTokens, signal } = options;
  const waiting = sequences
    .map((sequence, index) => ({ sequence, index }))
    .filter(({ sequence }) => sequence.promptTokens.length + 2 <= target.facts.maxContext);
  const total = waiting.length;
  const finished: { readonly index: number; readonly recorded: RecordedSequence }[] = [];
  let active: Recording[] = [];
  try {
    for (;;) {
      if (signal?.aborted) throw new AbortedError('Recording', signal.reason);
      while (active.length < target.maxSequences) {
        const next = waiting.shift();
        if (next === undefined) break;
        active.push(new Recording(next.sequence, next.index, target, maxTokens));
      }
      if (active.length === 0) break;
      const planned = plan(active, target.maxRows);
      const result = await target.step(
        planned.map(({ recording, rows }) => recording.span(rows)),
        signal,
      );
      for (const [span, { recording, rows }] of planned.entries()) recording.take(result, span, rows);
      for (const recording of active) {
        if (!recording.done) continue;
        recording.cache[Symbol.dispose]();
        finished.push({ index: recording.index, recorded: recording.result() });
        options.onProgress?.(finished.length, total);
      }
      active = active.filter((recording) => !recording.done);
    }
  } finally {
    for (const recording of active) recording.cache[Symbol.dispose]();
  }
  return finished.sort((a, b) => a.index - b.index).map(({ recorded }) => recorded);
}

interface PlannedSpan {
  readonly recording: Recording;
  readonly rows: number;
}

/** Every sequence gets a row; the rest goes to prompts and known answers in order. */
function plan(active: readonly Recording[], maxRows: number): PlannedSpan[] {
  let left = maxRows - active.length;
  if (left < 0) throw new AppError('internal', `Expected steps of at least ${active.length} rows, got ${maxRows}`);
  return active.map((recording) => {
    const rows = Math.min(recording.uncached, left + 1);
    left -= rows - 1;
    return { recording, rows };
  });
}

class Recording {
  readonly index: number;
  readonly cache: SequenceCache;
  readonly #source: SequenceToRecord;
  readonly #tokens: TokenId[];
  readonly #limit: number;
  readonly #eos: ReadonlySet<TokenId>;
  readonly #chunks: Float32Array[][];
  readonly #hidden: number;
  done = false;

  constructor(source: SequenceToRecord, index: number, target: Target, maxTokens: number) {
    const { facts } = target;
    this.#source = source;
    this.index = index;
    this.#limit = Math.min(source.promptTokens.length + maxTokens, facts.maxContext);
    const known = source.answer === null ? source.promptTokens : [...source.promptTokens, ...source.answer];
    this.#tokens = known.slice(0, this.#limit);
    this.#eos = new Set(facts.eosTokenIds);
    this.#hidden = facts.hiddenSize;
    this.#chunks = Array.from({ length: facts.layers }, () => []);
    this.cache = target.openCache();
  }

  /** Known tokens that are still to be inputs. The last token of a known answer is never one. */
  get uncached(): number {
    return this.#tokens.length - this.cache.length - (this.#source.answer === null ? 0 : 1);
  }

  span(rows: number) {
    const start = this.cache.length;
    const wanted = this.#source.answer === null && rows === this.uncached;
    return { cache: this.cache, tokens: this.#tokens.slice(start, start + rows), logitsFrom: wanted ? rows - 1 : rows };
  }

  take(result: StepResult, span: number, rows: number): void {
    const first = result.firstRow(span) * this.#hidden;
    for (const [layer, chunks] of this.#chunks.entries()) {
      const tap = result.taps.get(layer);
      if (tap === undefined) throw new AppError('internal', `Expected a target with all layers tapped, layer ${layer} is not`);
      chunks.push(tap.data.slice(first, first + rows * this.#hidden));
    }
    if (this.#source.answer !== null) {
      this.done = this.uncached === 0;
      return;
    }
    if (this.cache.length < this.#tokens.length) return;
    const token = result.greedy(span, rows - 1);
    this.#tokens.push(token);
    this.done = this.#eos.has(token) || this.#tokens.length >= this.#limit;
  }

  result(): RecordedSequence {
    const { id, category, promptTokens } = this.#source;
    return { id, category, tokens: this.#tokens, answerStart: promptTokens.length, layers: this.#chunks.map(joined) };
  }
}

function joined(chunks: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}
