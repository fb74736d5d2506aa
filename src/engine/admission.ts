/** Who gets a sequence and when: limits, the queue, and the memory for caches. */
import { AppError } from '../core/app-error.ts';
import type { Target } from '../target/target.ts';
import { CacheBudget, cacheBytes } from './cache-budget.ts';
import { requestFraction } from './drafter-split.ts';
import type { GenerateRequest } from './engine.ts';
import type { EngineLimits } from './engine-limits.ts';
import type { GuardedServed } from './guarded-drafter.ts';
import { type PrefixCache, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import type { RunningRequest } from './running-request.ts';
import { findDrafter, type ServedDrafter } from './served-drafter.ts';
import { sharesBeginning } from './shared-beginning.ts';
import { WaitingQueue } from './waiting-queue.ts';

export interface ShadowOptions {
  readonly drafters: readonly string[];
  /** Share of the requests, 0 to 1. */
  readonly rate: number;
}

export interface AdmissionOptions {
  readonly target: Target;
  /** As they are at the moment. */
  readonly drafters: () => readonly GuardedServed[];
  readonly prefixes: PrefixCache;
  /** Requests that may wait for a sequence. */
  readonly maxWaiting: number;
  readonly limits: EngineLimits;
  readonly cacheBytes: number;
  readonly shadow: ShadowOptions | null;
}

export class Admission {
  readonly waiting = new WaitingQueue();
  readonly running: RunningRequest[] = [];
  readonly budget: CacheBudget;
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.budget = new CacheBudget(options.cacheBytes);
  }

  get all(): readonly RunningRequest[] {
    return [...this.waiting, ...this.running];
  }

  /** @throws AppError as `Engine.generate` says */
  check(request: GenerateRequest): void {
    const { maxContext, vocabSize } = this.#options.target.facts;
    const { promptTokens } = request;
    findDrafter(this.#options.drafters(), request.drafter);
    const refuse = (message: string) => new AppError('invalid_request', message, { details: { param: 'prompt' } });
    if (promptTokens.length === 0) throw refuse('Expected a prompt of at least one token, got an empty one');
    const unknown = promptTokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
    if (unknown !== undefined) throw refuse(`Expected token ids of 0 to ${vocabSize - 1}, got ${unknown}`);
    if (promptTokens.length >= maxContext) {
      throw new AppError(
        'context_length_exceeded',
        `Expected a prompt shorter than the context of ${maxContext} tokens, got ${promptTokens.length}; shorten it`,
        { details: { promptTokens: promptTokens.length, maxContext } },
      );
    }
    this.#checkQueue(promptTokens.length);
  }

  #checkQueue(promptTokens: number): void {
    const { target, maxWaiting, limits } = this.#options;
    // Requests that came a moment ago may not have been given their free sequences yet.
    const free = target.maxSequences - this.running.length;
    if (this.waiting.length >= free + maxWaiting) {
      throw new AppError('overloaded', `${this.waiting.length} requests are waiting already; try again later`, {
        details: { limit: 'max_num_queued_reqs' },
      });
    }
    if (this.waiting.length >= free && this.waiting.tokens + promptTokens > limits.maxWaitingTokens) {
      throw new AppError('overloaded', `${this.waiting.tokens} prompt tokens are waiting already; try again later`, {
        details: { limit: 'max_num_queued_tokens' },
      });
    }
  }

  /** The next request, with memory set aside for it, or null while there is no room for it. It counts as running only once it is in `running`. */
  take(): RunningRequest | null {
    if (this.running.length >= this.#options.target.maxSequences) return null;
    const request = this.#next();
    // Who needs more memory than is left holds up those behind, or it would wait for ever.
    if (request === undefined || !this.#reserve(request)) return null;
    this.waiting.remove(request);
    return request;
  }

  remove(request: RunningRequest): void {
    if (this.waiting.remove(request)) return;
    this.budget.release(request.reservedBytes);
    request.reservedBytes = 0;
    const index = this.running.indexOf(request);
    if (index >= 0) this.running.splice(index, 1);
  }

  /** The first that waits, but for those that had better wait for a prompt under way. */
  #next(): RunningRequest | undefined {
    const { prefixes, target, drafters } = this.#options;
    const underWay = prefixes.enabled ? this.running.flatMap((running) => running.promptUnderWay() ?? []) : [];
    if (underWay.length === 0) return this.waiting.first;
    const block = target.recurrent === undefined ? 1 : SNAPSHOT_POSITIONS;
    for (const waiting of this.waiting) {
      const { promptTokens: tokens, cacheSalt: salt = null, promptLogprobs = null, draftTokens } = waiting.request;
      const drafter = draftTokens === 0 ? null : findDrafter(drafters(), waiting.request.drafter);
      const wanted = { tokens, salt, drafter: drafter?.drafter ?? null };
      // Rows that are told of have to be computed.
      if (promptLogprobs !== null || !sharesBeginning(wanted, underWay, block)) return waiting;
    }
    return undefined;
  }

  #reserve(running: RunningRequest): boolean {
    const { target, drafters } = this.#options;
    const { maxContext } = target.facts;
    const { promptTokens, maxTokens, drafter } = running.request;
    const positions = Math.min(promptTokens.length + (maxTokens ?? maxContext), maxContext);
    const served = findDrafter(drafters(), drafter);
    const bytes = cacheBytes(target, served?.drafter ?? null, positions);
    if (!this.budget.reserve(bytes)) return false;
    running.reservedBytes = bytes;
    const shadows = this.#shadowsOf(running.request, served);
    const shadowBytes = shadows.reduce((sum, { drafter: { bytesPerPosition } }) => sum + bytesPerPosition * positions, 0);
    // No request waits for the memory of those who only watch.
    if (shadows.length > 0 && this.budget.reserve(shadowBytes)) {
      running.reservedBytes += shadowBytes;
      running.shadows = shadows;
    }
    return true;
  }

  #shadowsOf(request: GenerateRequest, served: ServedDrafter | null): readonly GuardedServed[] {
    const { shadow, drafters } = this.#options;
    if (shadow === null || request.draftTokens === 0 || requestFraction(request, 'shadow') >= shadow.rate) return [];
    return drafters().filter((other) => other !== served && shadow.drafters.includes(other.name));
  }
}
