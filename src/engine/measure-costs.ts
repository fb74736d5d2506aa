/** What steps and drafts cost on this machine, measured once before the first request. */
import type { TokenId } from '../core/token.ts';
import { CostModel, type CostPoint } from '../decode/draft-length/cost-model.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { StepResult, Target } from '../target/target.ts';

/** Rows measured, the most telling first: on a slow machine there is no time for all of them. */
const ROWS = [1, 5, 2, 9, 3, 16, 32];
const LEAST_POINTS = 2;
/** Repeated while there is time; the fastest run counts, as others only ever make a run slower. */
const REPEATS = 4;
const BUDGET_MS = 500;
const CONTEXT = 48;

/** @param drafters each gets a model of its own; their caches must be free */
export async function measureCosts(target: Target, drafters: readonly Drafter[]): Promise<CostModel[]> {
  const { vocabSize, maxContext } = target.facts;
  const context = Math.min(CONTEXT, target.maxRows, Math.floor(maxContext / 2));
  const rows = ROWS.filter((count) => count <= target.maxRows && context + count <= maxContext);
  const started = performance.now();
  const inTime = () => performance.now() - started < BUDGET_MS;
  const fastest = new Map<number, number>();
  using cache = target.openCache();
  const begin = async () => {
    cache.truncate(0);
    return await target.step([{ cache, tokens: someTokens(context, vocabSize), logitsFrom: context }]);
  };
  await begin();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const count of rows) {
      if (fastest.size >= LEAST_POINTS && !inTime()) break;
      if (cache.length + count > maxContext) await begin();
      const ms = await timed(() => target.step([{ cache, tokens: someTokens(count, vocabSize), logitsFrom: 0 }]));
      fastest.set(count, Math.min(ms, fastest.get(count) ?? Number.POSITIVE_INFINITY));
    }
  }
  const points: CostPoint[] = [...fastest].map(([count, ms]) => ({ rows: count, ms })).sort((a, b) => a.rows - b.rows);

  const models: CostModel[] = [];
  for (const drafter of drafters) {
    const { taps } = await begin();
    const { drafts, contextMs } = await draftCosts(drafter, taps, context, vocabSize);
    models.push(new CostModel(points, drafts, contextMs));
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
): Promise<{ readonly drafts: CostPoint[]; readonly contextMs: number }> {
  const never = new AbortController().signal;
  using state = drafter.open();
  /** Milliseconds of a draft that takes in all rows from position `first` on. */
  const fastest = async (first: number, budget: number): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      state.rewind(first);
      // Other tokens each time, or a drafter may find that it has these rows already.
      const tokens = someTokens(rows - first + 1, vocabSize, repeat);
      const anchor = tokens.pop() as TokenId;
      state.observe({ position: first, tokens, taps, firstRow: first });
      least = Math.min(least, await timed(() => drafter.propose([{ state, anchor, budget }], never)));
    }
    return least;
  };
  const withContextMs = await fastest(0, 1);
  const drafts: CostPoint[] = [];
  for (const budget of new Set([1, drafter.maxDraftTokens])) {
    drafts.push({ rows: budget, ms: await fastest(rows - 1, budget) });
  }
  const contextMs = Math.max(withContextMs - (drafts[0] as CostPoint).ms, 0) / Math.max(rows - 1, 1);
  return { drafts, contextMs };
}

/** Tokens without meaning. */
function someTokens(count: number, vocabSize: number, variant = 0): TokenId[] {
  return Array.from({ length: count }, (_, i) => (7 * i + 11 + variant) % vocabSize);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
