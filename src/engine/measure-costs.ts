/** What steps and drafts cost on this machine, measured once before the first request. */
import type { TokenId } from '../core/token.ts';
import { CostModel, type CostPoint } from '../decode/draft-length/cost-model.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { Target } from '../target/target.ts';

/** Rows measured, the most telling first: on a slow machine there is no time for all of them. */
const ROWS = [1, 5, 2, 9, 3, 16, 32];
const LEAST_POINTS = 2;
/** Repeated while there is time; the fastest run counts, as others only ever make a run slower. */
const REPEATS = 3;
const BUDGET_MS = 350;
const CONTEXT = 48;

/** @param drafters each gets a model of its own; their caches must be free */
export async function measureCosts(target: Target, drafters: readonly Drafter[]): Promise<CostModel[]> {
  const tokens = Array.from({ length: CONTEXT + Math.max(...ROWS) }, (_, i) => (7 * i + 11) % target.facts.vocabSize);
  const context = Math.min(CONTEXT, target.maxRows, Math.floor(target.facts.maxContext / 2));
  const rows = ROWS.filter((count) => count <= target.maxRows && context + count <= target.facts.maxContext);
  const started = performance.now();
  const inTime = () => performance.now() - started < BUDGET_MS;
  const fastest = new Map<number, number>();
  using cache = target.openCache();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const count of rows) {
      if (fastest.size >= LEAST_POINTS && !inTime()) break;
      cache.truncate(0);
      await target.step([{ cache, tokens: tokens.slice(0, context), logitsFrom: context }]);
      const ms = await timed(() => target.step([{ cache, tokens: tokens.slice(context, context + count), logitsFrom: 0 }]));
      fastest.set(count, Math.min(ms, fastest.get(count) ?? Number.POSITIVE_INFINITY));
    }
  }
  const points: CostPoint[] = [...fastest].map(([count, ms]) => ({ rows: count, ms })).sort((a, b) => a.rows - b.rows);

  const models: CostModel[] = [];
  for (const drafter of drafters) {
    cache.truncate(0);
    const { drafts, contextMs } = await draftCosts(target, drafter, cache, tokens.slice(0, context));
    models.push(new CostModel(points, drafts, contextMs));
  }
  return models;
}

/** Drafts of one token and of the longest kind, which take in a row first, as in a round; and what a row more to take in adds. */
async function draftCosts(
  target: Target,
  drafter: Drafter,
  cache: ReturnType<Target['openCache']>,
  tokens: readonly TokenId[],
): Promise<{ readonly drafts: CostPoint[]; readonly contextMs: number }> {
  const never = new AbortController().signal;
  using state = drafter.open();
  const anchor = tokens[0] as TokenId;
  /** Milliseconds of a draft behind rows that it takes in. */
  const draft = async (rows: readonly TokenId[], budget: number): Promise<number> => {
    const position = cache.length;
    const { taps } = await target.step([{ cache, tokens: rows, logitsFrom: rows.length }]);
    state.observe({ position, tokens: rows, taps, firstRow: 0 });
    return await timed(() => drafter.propose([{ state, anchor, budget }], never));
  };
  // The first run of a shape takes longer than others.
  await draft(tokens, 1);
  const drafts: CostPoint[] = [];
  for (const budget of new Set([1, drafter.maxDraftTokens])) {
    let fastest = Number.POSITIVE_INFINITY;
    for (let repeat = 0; repeat < REPEATS; repeat++) fastest = Math.min(fastest, await draft([anchor], budget));
    drafts.push({ rows: budget, ms: fastest });
  }
  cache.truncate(0);
  state.rewind(0);
  const shortest = (drafts[0] as CostPoint).ms;
  const contextMs = Math.max((await draft(tokens, 1)) - shortest, 0) / Math.max(tokens.length - 1, 1);
  return { drafts, contextMs };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
