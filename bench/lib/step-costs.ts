/** Cost of a step of the target by its rows, and of a draft by its length, seen from inside an engine. */
import type { OpenedEngine } from '../../src/engine/open-engine.ts';
import { median } from './statistics.ts';

export interface StepCost {
  readonly rows: number;
  readonly stepMs: number;
  /** The part spent in ONNX Runtime. */
  readonly bareMs: number;
  /** A draft of rows - 1 tokens; null where there is none. */
  readonly draftMs: number | null;
}

const MOST_ROWS = 9;
const REPEATS = 30;
const CONTEXT = 100;

/** @param bareMs total time spent inside ONNX Runtime so far */
export async function stepCosts(plain: OpenedEngine, drafting: OpenedEngine, bareMs: () => number): Promise<StepCost[]> {
  const { target } = plain;
  const { target: tapped, drafters } = drafting;
  const drafter = drafters[0]?.drafter;
  const tokens = Array.from({ length: CONTEXT }, (_, i) => 1000 + i);
  const never = new AbortController().signal;
  using cache = target.openCache();
  using tappedCache = tapped.openCache();
  await target.step([{ cache, tokens, logitsFrom: CONTEXT - 1 }]);
  const prompt = await tapped.step([{ cache: tappedCache, tokens, logitsFrom: CONTEXT - 1 }]);
  using state = drafter?.open();
  state?.observe({ position: 0, tokens, taps: prompt.taps, firstRow: 0 });
  if (state) await drafter?.propose([{ state, anchor: 1, budget: 0 }], never);

  const step: number[][] = Array.from({ length: MOST_ROWS + 1 }, () => []);
  const bare: number[][] = Array.from({ length: MOST_ROWS + 1 }, () => []);
  const draft: number[][] = Array.from({ length: MOST_ROWS + 1 }, () => []);
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (let rows = 1; rows <= MOST_ROWS; rows++) {
      const before = bareMs();
      const started = performance.now();
      await target.step([{ cache, tokens: tokens.slice(0, rows), logitsFrom: 0 }]);
      step[rows]?.push(performance.now() - started);
      bare[rows]?.push(bareMs() - before);
      cache.truncate(CONTEXT);
      const budget = rows - 1;
      if (!state || !drafter || budget < 1 || budget > drafter.maxDraftTokens) continue;
      // Two committed rows a round, as an acceptance length of two has.
      const COMMITTED = 2;
      const result = await tapped.step([{ cache: tappedCache, tokens: tokens.slice(0, COMMITTED), logitsFrom: 0 }]);
      state.observe({ position: CONTEXT, tokens: tokens.slice(0, COMMITTED), taps: result.taps, firstRow: 0 });
      const draftStarted = performance.now();
      await drafter.propose([{ state, anchor: 1, budget }], never);
      draft[rows]?.push(performance.now() - draftStarted);
      state.rewind(CONTEXT);
      tappedCache.truncate(CONTEXT);
    }
  }
  return Array.from({ length: MOST_ROWS }, (_, i) => ({
    rows: i + 1,
    stepMs: median(step[i + 1] ?? []),
    bareMs: median(bare[i + 1] ?? []),
    draftMs: draft[i + 1]?.length ? median(draft[i + 1] ?? []) : null,
  }));
}
