/** Memory for the caches of running requests, reserved before they start so that none can run out of it. */
import { AppError } from '../core/app-error.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { Target } from '../target/target.ts';

/** Memory comes in pages, which hold about so many positions of a head. */
const PAGE_POSITIONS = 16;

/** Bytes that a cache of so many positions takes, with what a drafter keeps of them. */
export function cacheBytes(target: Target, drafter: Drafter | null, positions: number): number {
  // One page more, as positions need not begin where a page does, and rows of a rejected draft are behind the last one.
  const pages = Math.ceil(positions / PAGE_POSITIONS) + 1;
  const bytesPerPosition = target.cacheBytesPerPosition + (drafter?.bytesPerPosition ?? 0);
  return pages * PAGE_POSITIONS * bytesPerPosition + (target.recurrent?.bytesPerSequence ?? 0);
}

export class CacheBudget {
  readonly totalBytes: number;
  #reserved = 0;

  constructor(totalBytes: number) {
    this.totalBytes = totalBytes;
  }

  /** Share of the budget that is reserved, 0..1. */
  get usage(): number {
    return this.#reserved === 0 ? 0 : this.#reserved / this.totalBytes;
  }

  /** Bytes that are not reserved. */
  get free(): number {
    return this.totalBytes - this.#reserved;
  }

  /** @returns whether there was room */
  reserve(bytes: number): boolean {
    if (bytes > this.free) return false;
    this.#reserved += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#reserved -= bytes;
  }
}

/**
 * The budget for a target: what was asked for, or what all sequences can need at once, if there is so much memory.
 * @param availableBytes of the machine, with the models loaded
 * @throws AppError `invalid_config` when one sequence of full length does not fit
 */
export function planCacheBytes(
  target: Target,
  drafters: readonly Drafter[],
  asked: number | null,
  availableBytes: number,
): number {
  const perSequence = Math.max(...[null, ...drafters].map((drafter) => cacheBytes(target, drafter, target.facts.maxContext)));
  const most = perSequence * target.maxSequences;
  const total = asked ?? Math.min(most, availableBytes);
  if (total >= perSequence) return Math.min(total, most);
  throw new AppError(
    'invalid_config',
    `Expected at least ${perSequence} bytes for the caches, as a sequence of ${target.facts.maxContext} positions takes, got ` +
      `${Math.floor(total)}${asked === null ? ' of free memory' : ''}; lower --max-context${asked === null ? '' : ' or raise --kv-cache-bytes'}`,
  );
}
