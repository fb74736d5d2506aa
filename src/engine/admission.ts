/** Who gets a sequence and when: limits, the queue, and the memory for caches. */
import { AppError } from '../core/app-error.ts';
import type { Target } from '../target/target.ts';
import { CacheBudget, cacheBytes } from './cache-budget.ts';
import { requestFraction } from './drafter-split.ts';
import type { GenerateRequest, QueuedRequest } from './engine.ts';
import type { EngineLimits } from './engine-limits.ts';
import type { GuardedServed } from './guarded-drafter.ts';
import { type PrefixCache, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import { type FreeRoom, type QueueDemand, queueDemand } from './queue-demand.ts';
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
    this.checkQueue([request]);
  }

  /** @throws AppError as `Engine.checkQueue` says */
  checkQueue(requests: readonly QueuedRequest[]): void {
    const { target, maxWaiting, limits } = this.#options;
    const { maxSequences } = target;
    const free = { sequences: maxSequences - this.running.length, bytes: this.budget.free };
    // The loop may not have come to those yet that could start.
    const asked = [...this.waiting].map(({ request }) => request);
    const limit = this.#limitPast(this.#demand([...asked, ...requests], free, this.running));
    if (limit === null) return;
    const alone = this.#demand(requests, { sequences: maxSequences, bytes: this.budget.totalBytes }, []);
    const never = this.#limitPast(alone);
    if (never === 'max_num_queued_reqs') {
      const most = requests.length - (alone.requests - maxWaiting);
      throw new AppError(
        'invalid_request',
        `Expected at most ${most} answers at a time, as many as can run and wait here, got ${requests.length}; ` +
          'ask for fewer, or split the request',
        { details: { param: 'n' } },
      );
    }
    if (never === 'max_num_queued_tokens') {
      throw new AppError(
        'invalid_request',
        `Expected prompts of which at most ${limits.maxWaitingTokens} tokens have to wait, got ${alone.tokens}; split the request`,
        { details: { param: 'prompt' } },
      );
    }
    const waiting =
      limit === 'max_num_queued_reqs'
        ? `${this.waiting.length} requests are`
        : `${this.#demand(asked, free, this.running).tokens} prompt tokens are`;
    throw new AppError('overloaded', `${waiting} waiting already; try again later`, { details: { limit } });
  }

  #demand(requests: readonly QueuedRequest[], free: FreeRoom, running: readonly RunningRequest[]): QueueDemand {
    const underWay = this.#options.prefixes.enabled ? running.map(({ request }) => request) : null;
    return queueDemand(requests, free, (request) => this.#bytesOf(request), underWay);
  }

  /** The option whose value a queue is past; null when it is past none. */
  #limitPast({ requests, tokens }: QueueDemand): string | null {
    const { maxWaiting, limits } = this.#options;
    if (requests > maxWaiting) return 'max_num_queued_reqs';
    return tokens > limits.maxWaitingTokens ? 'max_num_queued_tokens' : null;
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
    const { request } = running;
    const bytes = this.#bytesOf(request);
    if (!this.budget.reserve(bytes)) return false;
    running.reservedBytes = bytes;
    const positions = this.#positionsOf(request);
    const shadows = this.#shadowsOf(request, findDrafter(this.#options.drafters(), request.drafter));
    const shadowBytes = shadows.reduce(
      (sum, { drafter }) => sum + drafter.bytesPerPosition * positions + drafter.bytesPerSequence,
      0,
    );
    // No request waits for the memory of those who only watch.
    if (shadows.length > 0 && this.budget.reserve(shadowBytes)) {
      running.reservedBytes += shadowBytes;
      running.shadows = shadows;
    }
    return true;
  }

  /** That it may come to have. */
  #positionsOf({ promptTokens, maxTokens }: QueuedRequest): number {
    const { maxContext } = this.#options.target.facts;
    return Math.min(promptTokens.length + (maxTokens ?? maxContext), maxContext);
  }

  /** Memory that it needs, without shadows. */
  #bytesOf(request: QueuedRequest): number {
    const { target, drafters } = this.#options;
    const served = findDrafter(drafters(), request.drafter);
    return cacheBytes(target, served?.drafter ?? null, this.#positionsOf(request));
  }

  #shadowsOf(request: GenerateRequest, served: ServedDrafter | null): readonly GuardedServed[] {
    const { shadow, drafters } = this.#options;
    if (shadow === null || request.draftTokens === 0 || requestFraction(request, 'shadow') >= shadow.rate) return [];
    return drafters().filter((other) => other !== served && shadow.drafters.includes(other.name));
  }
}
