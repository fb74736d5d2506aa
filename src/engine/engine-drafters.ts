/** The drafters of an engine: who drafts for whom, who takes whose place, and when one may go. */
import type { Drafter } from '../drafter/drafter.ts';
import { DrafterExchange } from './drafter-exchange.ts';
import { pickDrafter, type SplitWeights } from './drafter-split.ts';
import type { DrafterStatistics } from './drafter-statistics.ts';
import { drafterStatus } from './drafter-status.ts';
import { DrafterSwaps } from './drafter-swaps.ts';
import type { DrafterStatus, GenerateRequest, SwapRecord } from './engine.ts';
import type { DecodeEngineParts } from './engine-parts.ts';
import { GuardedDrafter, type GuardedServed } from './guarded-drafter.ts';
import type { PrefixCache } from './prefix-cache.ts';
import type { RunningRequest } from './running-request.ts';
import type { ServedDrafter } from './served-drafter.ts';

/** How long a drafter that hung is left out. */
const QUARANTINE_MS = 60_000;

export class EngineDrafters {
  readonly swaps: DrafterSwaps;
  readonly #exchange: DrafterExchange;
  readonly #split: SplitWeights | null;

  constructor(parts: DecodeEngineParts) {
    const { target, limits, observers, cacheBytes = Number.POSITIVE_INFINITY } = parts;
    const guarded = parts.drafters.map((served) => guard(served, parts));
    const onSwap = (record: SwapRecord) => {
      for (const observer of observers) observer.onSwap?.(record);
    };
    this.swaps = new DrafterSwaps(guarded, onSwap, parts.swapRules);
    this.#split = parts.split ?? null;
    this.#exchange = new DrafterExchange({
      swaps: this.swaps,
      target,
      cacheBytes,
      observers,
      drafterBytes: parts.drafterBytes ?? Number.POSITIVE_INFINITY,
      load: parts.loadDrafter ?? null,
      attempt: parts.tryDrafter ?? null,
      timeoutMs: limits.drafterTimeoutMs,
      guard: (served) => guard(served, parts),
    });
  }

  /** For new requests. */
  get current(): readonly GuardedServed[] {
    return this.swaps.current;
  }

  status(statistics: DrafterStatistics): readonly DrafterStatus[] {
    return drafterStatus(this.swaps, this.#split, statistics);
  }

  /** The request, with a drafter of the split if it names none. */
  assigned(request: GenerateRequest): GenerateRequest {
    return request.drafter !== null || this.#split === null
      ? request
      : { ...request, drafter: pickDrafter(this.#split, request) };
  }

  /**
   * @param stopping whether the engine has begun to stop
   * @throws AppError as `Engine.loadDrafter` says
   */
  async load(name: string, path: string, stopping: AbortSignal): Promise<SwapRecord> {
    return await this.#exchange.exchange(name, path, stopping);
  }

  /** Those that were replaced go when the last sequence that knows them has ended, and the last call. */
  async disposeUnused(running: readonly RunningRequest[], prefixes: PrefixCache): Promise<void> {
    const started = running.flatMap((request) => request.started ?? []);
    const inUse = started.flatMap(({ given, sequence }) => [given, ...sequence.shadows.map(({ drafter }) => drafter)]);
    // Nobody's answer waits for one that hangs.
    const hanging = this.swaps.loaded.flatMap(({ drafter }) => (drafter.hangs ? [drafter] : []));
    for (const { drafter } of this.swaps.takeUnused(new Set([...inUse, ...hanging] as readonly Drafter[]))) {
      prefixes.forget(drafter);
      await drafter[Symbol.asyncDispose]();
    }
  }

  /** @returns whether all have gone; one that hangs or is still being loaded is left to the end of the process */
  async dispose(): Promise<boolean> {
    const drafters = this.swaps.loaded.map(({ drafter }) => drafter);
    for (const drafter of drafters) await drafter[Symbol.asyncDispose]();
    return !this.#exchange.loading && !drafters.some(({ hangs }) => hangs);
  }
}

function guard(served: ServedDrafter, { limits, observers }: DecodeEngineParts): GuardedServed {
  const { name } = served;
  const onQuarantine = (reason: string) => {
    for (const observer of observers) observer.onQuarantine?.(name, reason);
  };
  const options = { name, timeoutMs: limits.drafterTimeoutMs, quarantineMs: QUARANTINE_MS, onQuarantine };
  return { ...served, drafter: new GuardedDrafter(served.drafter, options) };
}
