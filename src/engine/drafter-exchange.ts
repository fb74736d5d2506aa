/** Loads drafters into the places of others while the engine runs. */
import { AppError } from '../core/app-error.ts';
import type { Target } from '../target/target.ts';
import { cacheBytes } from './cache-budget.ts';
import type { DrafterSwaps } from './drafter-swaps.ts';
import type { EngineObserver, SwapRecord } from './engine.ts';
import type { GuardedServed } from './guarded-drafter.ts';
import { findDrafter, type ServedDrafter } from './served-drafter.ts';

export interface DrafterExchangeOptions {
  readonly swaps: DrafterSwaps;
  readonly target: Target;
  /** Memory for the caches of running requests. */
  readonly cacheBytes: number;
  readonly observers: readonly EngineObserver[];
  /** Loads a drafter that can take the place of another one; null: none can. */
  readonly load: ((replaced: ServedDrafter, path: string) => Promise<ServedDrafter>) | null;
  readonly guard: (served: ServedDrafter) => GuardedServed;
}

export class DrafterExchange {
  readonly #options: DrafterExchangeOptions;
  #loading = false;

  constructor(options: DrafterExchangeOptions) {
    this.#options = options;
  }

  /**
   * @param stopping whether the engine has begun to stop
   * @throws AppError as `Engine.loadDrafter` says
   */
  async exchange(name: string, path: string, stopping: AbortSignal): Promise<SwapRecord> {
    const { swaps, observers, load, guard } = this.#options;
    const replaced = findDrafter(swaps.current, name);
    if (load === null || replaced === null) {
      throw new AppError('invalid_request', `Expected a drafter that can be replaced, got ${name}; see --allow-drafter-swap`);
    }
    if (this.#loading) throw new AppError('rate_limited', 'A drafter is being loaded already; try again when it is there');
    this.#loading = true;
    try {
      const next = await load(replaced, path);
      await this.#refuse(next, stopping);
      const record = swaps.replace(guard(next), path);
      for (const observer of observers) observer.onSwap?.(record);
      return record;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      for (const observer of observers) observer.onSwapFailure?.(name, path, reason);
      throw error;
    } finally {
      this.#loading = false;
    }
  }

  /** @throws AppError when it cannot serve; it is disposed of then */
  async #refuse({ drafter }: ServedDrafter, stopping: AbortSignal): Promise<void> {
    const { target, cacheBytes: available } = this.#options;
    const needed = cacheBytes(target, drafter, target.facts.maxContext);
    if (!stopping.aborted && needed <= available) return;
    await drafter[Symbol.asyncDispose]();
    if (stopping.aborted) throw new AppError('unavailable', 'The server is shutting down');
    throw new AppError('invalid_request', `Expected a drafter whose caches fit ${available} bytes, got ${needed}`);
  }
}
