/** Loads drafters into the places of others while the engine runs. */
import { AppError } from '../core/app-error.ts';
import type { Target } from '../target/target.ts';
import { cacheBytes } from './cache-budget.ts';
import { drafterRefused } from './drafter-refused.ts';
import type { DrafterSwaps } from './drafter-swaps.ts';
import type { EngineObserver, SwapRecord } from './engine.ts';
import { type GuardedServed, guardFirstCalls } from './guarded-drafter.ts';
import { findDrafter, type ServedDrafter } from './served-drafter.ts';

/**
 * Loads a drafter that can take the place of another one.
 * @param freeBytes memory for its weights
 * @throws AppError `invalid_request` when it cannot be loaded or does not fit
 */
export type LoadDrafter = (replaced: ServedDrafter, path: string, freeBytes: number) => Promise<ServedDrafter>;

/**
 * Makes a draft that nobody uses.
 * @throws whatever the drafter throws; Error when what it proposes cannot be used
 */
export type TryDrafter = (served: ServedDrafter, signal: AbortSignal) => Promise<void>;

export interface DrafterExchangeOptions {
  readonly swaps: DrafterSwaps;
  readonly target: Target;
  /** Memory for the caches of running requests. */
  readonly cacheBytes: number;
  readonly observers: readonly EngineObserver[];
  /** Memory for the weights of all drafters that are loaded. */
  readonly drafterBytes: number;
  /** Null: no drafter can be replaced. */
  readonly load: LoadDrafter | null;
  /** Null: none is made before a drafter serves. */
  readonly attempt: TryDrafter | null;
  /** Milliseconds that a draft of a drafter in service may take. */
  readonly timeoutMs: number;
  readonly guard: (served: ServedDrafter) => GuardedServed;
}

export class DrafterExchange {
  readonly #options: DrafterExchangeOptions;
  #loading = false;

  constructor(options: DrafterExchangeOptions) {
    this.#options = options;
  }

  get loading(): boolean {
    return this.#loading;
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
      const next = await load(replaced, path, this.#freeBytes);
      await this.#refuse(next, stopping);
      await this.#try(next, path, stopping);
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

  /** Two are loaded until a swap is decided and the requests of the old drafter have ended. */
  get #freeBytes(): number {
    const { swaps, drafterBytes } = this.#options;
    return swaps.loaded.reduce((free, { weightBytes = 0 }) => free - weightBytes, drafterBytes);
  }

  /** @throws AppError when it cannot serve; it is disposed of then */
  async #refuse({ drafter }: ServedDrafter, stopping: AbortSignal): Promise<void> {
    const { target, cacheBytes: available } = this.#options;
    const needed = cacheBytes(target, drafter, target.facts.maxContext);
    if (!stopping.aborted && needed <= available) return;
    await drafter[Symbol.asyncDispose]();
    if (stopping.aborted) throw new AppError('unavailable', 'The server is shutting down');
    throw drafterRefused(`Expected a drafter whose caches fit ${available} bytes, got ${needed}`);
  }

  /** @throws AppError when it fails at a draft, or takes too long for one; it is disposed of then, or will be */
  async #try(next: ServedDrafter, path: string, stopping: AbortSignal): Promise<void> {
    const { swaps, attempt, timeoutMs } = this.#options;
    if (attempt === null) return;
    const drafter = guardFirstCalls(next.name, next.drafter, timeoutMs);
    try {
      await drafter.inTime((signal) => attempt(next, signal), stopping);
    } catch (error) {
      // One that hangs still uses its weights, and some of the target's.
      if (drafter.hangs) swaps.retire({ ...next, drafter });
      else await drafter[Symbol.asyncDispose]();
      const reason = error instanceof Error ? error.message : String(error);
      throw drafterRefused(`Expected a drafter that can draft, got ${path}, which failed at its first draft: ${reason}`, error);
    }
  }
}
