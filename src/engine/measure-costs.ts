/** What steps and drafts cost on this machine, measured while nothing else runs. */
import { AbortedError } from '../core/aborted-error.ts';
import type { TokenId } from '../core/token.ts';
import { CostModel } from '../decode/draft-length/cost-model.ts';
import type { CostPoint } from '../decode/draft-length/cost-surface.ts';
import type { Drafter, DraftState } from '../drafter/drafter.ts';
import type { SequenceCache, StepResult, Target } from '../target/target.ts';
import type { IdleTask } from './idle-work.ts';

/** Rows measured, the most telling first: on a slow machine there is no time for all of them. */
const ROWS = [1, 5, 2, 9, 3, 16, 32];
const LEAST_POINTS = 2;
/** Repeated while there is time; the fastest run counts, as others only ever make a run slower. */
const REPEATS = 4;
const BUDGET_MS = 500;
const CONTEXT = 48;
/**
 * Rounds while the server is idle: whether drafts are as long as can be, of one token, or none, and rows of the step behind them,
 * of each sequence. The first draft takes in the context too, and is made again; the last step is one without drafts.
 */
const ROUNDS = [
  ['longest', 1],
  ['shortest', 2],
  ['longest', 4],
  ['longest', 8],
  ['none', 1],
] as const;
/** Steps of more rows tell nothing new, but for two rows of each sequence. */
const MOST_ROWS = 32;
const CONTEXT_EACH = 8;
/** Repeated until each run has been confirmed by another that was about as fast, or so many times. */
const IDLE_REPEATS = [3, 10] as const;
const CONFIRMED = { times: 1.1, plusMs: 0.1 };

/**
 * With one sequence, before the first request.
 * @param drafters each gets a model of its own; their caches must be free
 */
export async function measureCosts(target: Target, drafters: readonly Drafter[]): Promise<CostModel[]> {
  const { vocabSize, maxContext } = target.facts;
  const context = Math.min(CONTEXT, target.maxRows, Math.floor(maxContext / 2));
  const rows = ROWS.filter((count) => count <= target.maxRows && context + count <= maxContext);
  const started = performance.now();
  const inTime = () => performance.now() - started < BUDGET_MS;
  const steps = new Fastest();
  using cache = target.openCache();
  const begin = async () => {
    cache.truncate(0);
    return await target.step([{ cache, tokens: someTokens(context, vocabSize), logitsFrom: context }]);
  };
  await begin();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const count of rows) {
      if (steps.points.length >= LEAST_POINTS && !inTime()) break;
      if (cache.length + count > maxContext) await begin();
      await steps.time(count, () => target.step([{ cache, tokens: someTokens(count, vocabSize), logitsFrom: 0 }]));
    }
  }

  const models: CostModel[] = [];
  for (const drafter of drafters) {
    const { taps } = await begin();
    const { drafts, contextMs } = await draftCosts(drafter, taps, context, vocabSize);
    models.push(new CostModel(steps.points, drafts, contextMs));
  }
  return models;
}

/**
 * Drafts of one token and of the longest kind, which take in a row first, as in a round; and what a row more to take in adds.
 * @param taps of a step of `rows` rows, the last one
 */
async function draftCosts(
  drafter: Drafter,
  taps: StepResult['taps'],
  rows: number,
  vocabSize: number,
): Promise<{ readonly drafts: readonly CostPoint[]; readonly contextMs: number }> {
  const never = new AbortController().signal;
  using state = drafter.open();
  /** Drafts that take in all rows from position `first` on. */
  const measure = async (into: Fastest, first: number, budget: number): Promise<void> => {
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      state.rewind(first);
      // Other tokens each time, or a drafter may find that it has these rows already.
      const tokens = someTokens(rows - first + 1, vocabSize, repeat);
      const anchor = tokens.pop() as TokenId;
      state.observe({ position: first, tokens, taps, firstRow: first });
      await into.time(budget, () => drafter.propose([{ state, anchor, budget }], never));
    }
  };
  const withContext = new Fastest();
  await measure(withContext, 0, 1);
  const drafts = new Fastest();
  for (const budget of new Set([1, drafter.maxDraftTokens])) await measure(drafts, rows - 1, budget);
  const moreMs = withContext.points[0]!.ms - drafts.points[0]!.ms;
  return { drafts: drafts.points, contextMs: Math.max(moreMs, 0) / Math.max(rows - 1, 1) };
}

/**
 * With any number of sequences, in rounds like those of service. What was measured at start is replaced, as the machine may have
 * been busy then.
 * @param name of the drafter
 * @param costs that are told
 */
export function measureWhenIdle(target: Target, name: string, sequences: number, costs: CostModel): IdleTask {
  const steps = new Fastest();
  const drafts = new Fastest();
  const [least, most] = IDLE_REPEATS;
  let repeats = 0;
  return async (drafters, signal) => {
    const drafter = drafters.find((one) => one.name === name)?.drafter;
    const mostRows = Math.min(Math.max(MOST_ROWS, 2 * sequences), target.maxRows);
    const rounds = ROUNDS.filter(([, rows]) => rows * sequences <= mostRows);
    const positions = rounds.reduce((sum, [, rows]) => sum + rows, CONTEXT_EACH);
    const fits = CONTEXT_EACH * sequences <= target.maxRows && positions <= target.facts.maxContext;
    if (drafter === undefined || !fits) return;
    const tokens = { longest: drafter.maxDraftTokens, shortest: 1 };
    for (; repeats < least || (repeats < most && !(steps.confirmed && drafts.confirmed)); repeats++) {
      if (sequences > target.maxSequences) return;
      using measured = new MeasuredSequences(target, drafter, sequences, signal);
      await measured.step(CONTEXT_EACH);
      for (const [draft, rows] of rounds) {
        if (draft === 'none') await measured.draft(0);
        else await drafts.time(tokens[draft] * sequences, () => measured.draft(tokens[draft]));
        await steps.time(rows * sequences, () => measured.step(rows));
      }
    }
    costs.measured(sequences, steps.points, drafts.points);
  };
}

/** Sequences whose tokens nobody reads. */
class MeasuredSequences implements Disposable {
  readonly #target: Target;
  readonly #drafter: Drafter;
  readonly #signal: AbortSignal;
  readonly #sequences: { readonly cache: SequenceCache; readonly state: DraftState; anchor: TokenId }[] = [];

  constructor(target: Target, drafter: Drafter, sequences: number, signal: AbortSignal) {
    this.#target = target;
    this.#drafter = drafter;
    this.#signal = signal;
    try {
      for (let i = 0; i < sequences; i++) this.#open();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  #open(): void {
    const cache = this.#target.openCache();
    try {
      this.#sequences.push({ cache, state: this.#drafter.open(), anchor: 0 });
    } catch (error) {
      cache[Symbol.dispose]();
      throw error;
    }
  }

  /** @param rows of each sequence */
  async step(rows: number): Promise<void> {
    if (this.#signal.aborted) throw new AbortedError('A measurement');
    const tokens = someTokens(rows, this.#target.facts.vocabSize);
    const spans = this.#sequences.map(({ cache }) => ({ cache, tokens, logitsFrom: 0 }));
    const result = await this.#target.step(spans, this.#signal);
    for (const [i, sequence] of this.#sequences.entries()) {
      const { cache, state } = sequence;
      state.observe({ position: cache.length - rows, tokens, taps: result.taps, firstRow: result.firstRow(i) });
      sequence.anchor = result.greedy(i, rows - 1);
    }
  }

  /** @param budget of each sequence */
  async draft(budget: number): Promise<void> {
    if (this.#signal.aborted) throw new AbortedError('A measurement');
    const requests = this.#sequences.map(({ state, anchor }) => ({ state, anchor, budget }));
    await this.#drafter.propose(requests, this.#signal);
  }

  [Symbol.dispose](): void {
    for (const { cache, state } of this.#sequences) {
      cache[Symbol.dispose]();
      state[Symbol.dispose]();
    }
  }
}

/** The fastest run by number of rows, or of draft tokens: whatever disturbs a run makes it slower. */
class Fastest {
  readonly #runs = new Map<number, { readonly ms: number; readonly secondMs: number }>();

  get points(): CostPoint[] {
    return [...this.#runs].map(([rows, { ms }]) => ({ rows, ms })).sort((a, b) => a.rows - b.rows);
  }

  get confirmed(): boolean {
    return [...this.#runs.values()].every(({ ms, secondMs }) => secondMs <= CONFIRMED.times * ms + CONFIRMED.plusMs);
  }

  async time(rows: number, work: () => Promise<unknown>): Promise<void> {
    const started = performance.now();
    await work();
    const took = performance.now() - started;
    const { ms, secondMs } = this.#runs.get(rows) ?? { ms: Number.POSITIVE_INFINITY, secondMs: Number.POSITIVE_INFINITY };
    this.#runs.set(rows, { ms: Math.min(took, ms), secondMs: Math.min(Math.max(took, ms), secondMs) });
  }
}

/** Tokens without meaning. */
function someTokens(count: number, vocabSize: number, variant = 0): TokenId[] {
  return Array.from({ length: count }, (_, i) => (7 * i + 11 + variant) % vocabSize);
}
