/** A target without a model: the logits of the next token are a function of the tokens before it. It objects to misuse. */
import { AbortedError } from '../../src/core/aborted-error.ts';
import { AppError } from '../../src/core/app-error.ts';
import type { TokenId } from '../../src/core/token.ts';
import { argmax } from '../../src/sampling/argmax.ts';
import type { StepResult, StepSpan, Target, TargetFacts } from '../../src/target/target.ts';
import { ScriptedCache } from './scripted-cache.ts';

/** Logits of the token behind a prefix; [vocab]. */
export type NextLogits = (prefix: readonly TokenId[]) => Float32Array;

export interface ScriptedTargetOptions {
  readonly vocabSize: number;
  readonly nextLogits: NextLogits;
  readonly eosTokenIds?: readonly TokenId[];
  readonly maxContext?: number;
  readonly maxSequences?: number;
  /** Caches that can be open at once. Default: `maxSequences`. */
  readonly maxCaches?: number;
  readonly cacheBytesPerPosition?: number;
  readonly maxRows?: number;
  /** What is left of `maxSequences` when so many are prepared for. Default: all. */
  readonly onPrepare?: (sequences: number) => number;
  /** Awaited inside each step, the first being step 0: where a test waits, fails or gives up. */
  readonly duringStep?: (step: number, signal: AbortSignal | undefined) => Promise<void> | void;
}

export class ScriptedTarget implements Target {
  readonly facts: TargetFacts;
  readonly maxRows: number;
  readonly cacheBytesPerPosition: number;
  /** Rows of each step that was started. */
  readonly stepRows: number[] = [];
  /** Rows whose logits were asked for, of each step that was started. */
  readonly logitRows: number[] = [];
  readonly #options: ScriptedTargetOptions;
  readonly #maxCaches: number;
  #maxSequences: number;
  #openCaches = 0;
  #stepping = false;
  #disposed = false;

  constructor(options: ScriptedTargetOptions) {
    this.#options = options;
    this.#maxSequences = options.maxSequences ?? 4;
    this.#maxCaches = options.maxCaches ?? this.#maxSequences;
    this.maxRows = options.maxRows ?? 64;
    this.cacheBytesPerPosition = options.cacheBytesPerPosition ?? 0;
    this.facts = {
      family: 'scripted',
      vocabSize: options.vocabSize,
      hiddenSize: 1,
      layers: 1,
      maxContext: options.maxContext ?? 256,
      eosTokenIds: options.eosTokenIds ?? [],
    };
  }

  get maxSequences(): number {
    return this.#maxSequences;
  }

  async prepare(sequences: number): Promise<void> {
    this.#maxSequences = this.#options.onPrepare?.(sequences) ?? this.#maxSequences;
  }

  /** Steps started so far. */
  get steps(): number {
    return this.stepRows.length;
  }

  get openCaches(): number {
    return this.#openCaches;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  openCache(): ScriptedCache {
    if (this.#openCaches === this.#maxCaches) {
      throw new AppError('overloaded', `All ${this.#maxCaches} caches are in use; wait for one to be closed`);
    }
    this.#openCaches++;
    return new ScriptedCache(this, this.facts.maxContext, () => {
      this.#openCaches--;
    });
  }

  async step(spans: readonly StepSpan[], signal?: AbortSignal): Promise<StepResult> {
    if (this.#disposed) throw misuse('a step of a target that is open');
    if (this.#stepping) throw misuse('one step at a time');
    const caches = this.#checked(spans);
    const step = this.stepRows.length;
    this.stepRows.push(spans.reduce((sum, span) => sum + span.tokens.length, 0));
    this.logitRows.push(spans.reduce((sum, span) => sum + span.tokens.length - span.logitsFrom, 0));
    this.#stepping = true;
    try {
      // A step that does not come to its end has written behind the caches' lengths all the same.
      for (const [index, { tokens }] of spans.entries()) caches[index]!.write(tokens);
      await this.#options.duringStep?.(step, signal);
      await Promise.resolve();
      if (signal?.aborted) throw new AbortedError('A step');
      return this.#result(spans, caches, step);
    } finally {
      this.#stepping = false;
    }
  }

  #checked(spans: readonly StepSpan[]): ScriptedCache[] {
    const rows = spans.reduce((sum, span) => sum + span.tokens.length, 0);
    if (spans.length === 0 || spans.length > this.maxSequences) {
      throw misuse(`1 to ${this.maxSequences} spans, got ${spans.length}`);
    }
    if (rows > this.maxRows) throw misuse(`at most ${this.maxRows} rows, got ${rows}`);
    const caches = spans.map(({ cache, tokens, logitsFrom }) => {
      if (!(cache instanceof ScriptedCache) || cache.owner !== this) throw misuse('a cache of this target');
      if (tokens.length === 0) throw misuse('a span with at least one token');
      if (logitsFrom < 0 || logitsFrom > tokens.length) throw misuse(`logitsFrom of 0 to ${tokens.length}, got ${logitsFrom}`);
      const unknown = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= this.facts.vocabSize);
      if (unknown !== undefined) throw misuse(`token ids below ${this.facts.vocabSize}, got ${unknown}`);
      cache.expectCutBack();
      const length = cache.length + tokens.length;
      if (length > cache.capacity) {
        throw new AppError('context_length_exceeded', `Expected at most ${cache.capacity} positions, got ${length}`, {
          details: { maxContext: cache.capacity, length },
        });
      }
      return cache;
    });
    if (new Set(caches).size !== caches.length) throw misuse('each cache once in a step');
    return caches;
  }

  #result(spans: readonly StepSpan[], caches: readonly ScriptedCache[], step: number): StepResult {
    const starts = caches.map((cache) => cache.length);
    const written = spans.map(({ tokens }, index) => [...caches[index]!.tokens, ...tokens]);
    for (const [index, { tokens, logitsFrom }] of spans.entries()) caches[index]!.grow(tokens.length, logitsFrom);
    const logits = (index: number, row: number): Float32Array => {
      const span = spans[index];
      if (this.stepRows.length !== step + 1) throw misuse('results read before the next step');
      if (span === undefined || row < span.logitsFrom || row >= span.tokens.length) {
        throw misuse(`rows whose logits were asked for, got row ${row} of span ${index}`);
      }
      const end = starts[index]! + row + 1;
      caches[index]!.holdsUpTo(end);
      return this.#options.nextLogits(written[index]!.slice(0, end));
    };
    return {
      logits,
      greedy: (index, row) => argmax(logits(index, row)),
      taps: new Map(),
      firstRow: (index) => spans.slice(0, index).reduce((sum, span) => sum + span.tokens.length, 0),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stepping) throw misuse('a target without a step in flight, when it is disposed of');
    this.#disposed = true;
  }
}

function misuse(expected: string): AppError {
  return new AppError('internal', `Misuse of the target: expected ${expected}`);
}
