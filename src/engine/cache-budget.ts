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
  const bytesPerSequence = (target.recurrent?.bytesPerSequence ?? 0) + (drafter?.bytesPerSequence ?? 0);
  return pages * PAGE_POSITIONS * bytesPerPosition + bytesPerSequence;
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

export interface MachineMemory {
  /** Free with the models loaded, and with a second drafter where one may take the place of another. */
  readonly availableBytes: number;
  /** Of that, for the beginnings of sequences that have ended. */
  readonly prefixCacheBytes: number;
}

/** Share of the free memory that caches take unless they are told otherwise: steps need some, and so does the rest of the process. */
const USABLE_MEMORY = 0.8;

/**
 * The budget for a target: what was asked for, or what all sequences can need at once, if there is so much memory.
 * @throws AppError `invalid_config` when one sequence of full length does not fit, or what was asked for is not there
 */
export function planCacheBytes(
  target: Target,
  drafters: readonly Drafter[],
  asked: number | null,
  { availableBytes, prefixCacheBytes }: MachineMemory,
): number {
  const perSequence = Math.max(...[null, ...drafters].map((drafter) => cacheBytes(target, drafter, target.facts.maxContext)));
  const most = perSequence * target.maxSequences;
  const total = asked ?? Math.floor(availableBytes * USABLE_MEMORY) - prefixCacheBytes;
  if (total < perSequence) {
    const advice =
      asked !== null
        ? 'lower --max-context or raise --kv-cache-bytes'
        : total + prefixCacheBytes < perSequence
          ? 'lower --max-context'
          : `lower --prefix-cache-bytes, which takes ${prefixCacheBytes}, or --max-context`;
    throw new AppError(
      'invalid_config',
      `Expected at least ${perSequence} bytes for the caches, as a sequence of ${target.facts.maxContext} positions takes, got ` +
        `${Math.max(total, 0)}${asked === null ? ' of free memory' : ''}; ${advice}`,
    );
  }
  const planned = Math.min(total, most);
  if (planned + prefixCacheBytes > availableBytes) {
    throw new AppError(
      'invalid_config',
      `Expected caches within the ${availableBytes} bytes of free memory, got ${planned} for running requests and ` +
        `${prefixCacheBytes} for beginnings; lower --kv-cache-bytes or --prefix-cache-bytes`,
    );
  }
  return planned;
}
