/** Which drafter stands behind each name, and what came of putting another one there. */
import { ClusteredMean } from '../core/clustered-mean.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { SwapRecord } from './engine.ts';
import type { GuardedServed } from './guarded-drafter.ts';

export interface SwapRules {
  /** Requests that must have ended on both sides before the two are compared. */
  readonly leastRequests: number;
  /** Requests behind a swap after which it is kept. */
  readonly mostRequests: number;
  /** One-sided limit in standard errors. It is looked at after every request, so it is stricter than for a single look. */
  readonly limit: number;
  /** Requests in which the new drafter may fail; one more brings the old one back. */
  readonly mostFailures: number;
}

export const SWAP_RULES: SwapRules = { leastRequests: 20, mostRequests: 200, limit: 3.5, mostFailures: 2 };

/** Half the width of a 95 % interval, in standard errors. */
const Z_95 = 1.959963984540054;
const MAX_HISTORY = 100;

/** Why a round has no draft through the drafter's own doing. Other reasons are the host's. */
const OWN_REASONS: ReadonlySet<ShortDraftReason | null> = new Set(['drafter-failed', 'no-proposal']);

interface Watch {
  readonly previous: GuardedServed;
  readonly current: GuardedServed;
  readonly index: number;
  /** Requests in which the new one failed. */
  readonly failed: Set<string>;
}

/** A round of a request that was given a drafter, whether or not that still takes part. */
export interface WatchedRound extends Pick<RoundRecord, 'drafted' | 'accepted'> {
  readonly shortBy: ShortDraftReason | null;
  /** What the drafter said when it failed in this request, else null. */
  readonly drafterError: string | null;
}

/**
 * A swap is watched: accepted tokens per draft of the new drafter against those of the one before it, with the uncertainty
 * between requests; a draft that the drafter owes counts as one of which nothing was accepted. When they are significantly
 * fewer, or the new drafter keeps failing, the old one comes back. Until that is decided both are loaded.
 */
export class DrafterSwaps {
  readonly #rules: SwapRules;
  readonly #onDecision: (record: SwapRecord) => void;
  readonly #samples = new Map<Drafter, ClusteredMean>();
  readonly #watches = new Map<string, Watch>();
  readonly #retired = new Set<GuardedServed>();
  #records: SwapRecord[] = [];
  #current: readonly GuardedServed[];
  #swaps = 0;

  /** @param onDecision told when a swap was kept or rolled back */
  constructor(drafters: readonly GuardedServed[], onDecision: (record: SwapRecord) => void, rules = SWAP_RULES) {
    this.#current = drafters;
    this.#onDecision = onDecision;
    this.#rules = rules;
  }

  /** Drafters for new requests. */
  get current(): readonly GuardedServed[] {
    return this.#current;
  }

  /** Whether a drafter waits for its last sequence to end. */
  get hasRetired(): boolean {
    return this.#retired.size > 0;
  }

  /** Everything that is loaded. */
  get loaded(): readonly GuardedServed[] {
    const previous = [...this.#watches.values()].map((watch) => watch.previous);
    return [...new Set([...this.#current, ...previous, ...this.#retired])];
  }

  /** Of one name, oldest first. */
  history(name: string): readonly SwapRecord[] {
    return this.#records.filter(({ drafter }) => drafter === name).map((record) => this.#measured(record));
  }

  /** New requests get `next` in place of the drafter of that name. What is undecided is nothing to go back to. */
  replace(next: GuardedServed, path: string): SwapRecord {
    const { name } = next;
    const previous = this.#watches.get(name)?.previous ?? this.#current.find((served) => served.name === name)!;
    if (this.#watches.has(name)) this.#settle(name, 'superseded', null);
    const index = this.#swaps++;
    this.#put(next);
    this.#watches.set(name, { previous, current: next, index, failed: new Set() });
    const record: SwapRecord = {
      id: index,
      drafter: name,
      path,
      time: new Date().toISOString(),
      state: 'watching',
      before: null,
      after: null,
      reason: null,
    };
    this.#records = [...this.#records, record].slice(-MAX_HISTORY);
    return this.#measured(record);
  }

  /** Takes over a drafter that never served, and cannot be disposed of yet. */
  retire(served: GuardedServed): void {
    this.#retired.add(served);
  }

  /** @param drafter that the request was given; it is in use until the request has ended */
  onRound(request: string, drafter: Drafter, { drafted, accepted, shortBy, drafterError }: WatchedRound): void {
    if (drafted === 0 && !OWN_REASONS.has(shortBy)) return;
    const sample = this.#samples.get(drafter) ?? new ClusteredMean();
    this.#samples.set(drafter, sample);
    sample.add(request, accepted);
    if (drafterError !== null) this.#failed(request, drafter, drafterError);
  }

  /** The request has ended. */
  onEnd(request: string): void {
    for (const sample of this.#samples.values()) sample.end(request);
    for (const name of [...this.#watches.keys()]) this.#decide(name);
  }

  /** Drafters that nobody will need again; the caller disposes of them. */
  takeUnused(inUse: ReadonlySet<Drafter>): readonly GuardedServed[] {
    const unused = [...this.#retired].filter(({ drafter }) => !inUse.has(drafter));
    for (const served of unused) {
      this.#retired.delete(served);
      this.#samples.delete(served.drafter);
    }
    return unused;
  }

  #failed(request: string, drafter: Drafter, error: string): void {
    const watch = [...this.#watches.values()].find(({ current }) => current.drafter === drafter);
    if (watch === undefined) return;
    const { failed, current } = watch;
    failed.add(request);
    if (failed.size <= this.#rules.mostFailures) return;
    this.#settle(current.name, 'rolled-back', `it failed in ${failed.size} requests, the last time with: ${error}`);
  }

  #decide(name: string): void {
    const { previous, current } = this.#watches.get(name)!;
    const before = this.#samples.get(previous.drafter)?.estimate() ?? null;
    const after = this.#samples.get(current.drafter)?.estimate() ?? null;
    const { leastRequests, mostRequests, limit } = this.#rules;
    if (after === null) return;
    if (before !== null && Math.min(before.requests, after.requests) >= leastRequests) {
      const error = Math.hypot(halfWidth(before.interval), halfWidth(after.interval)) / Z_95;
      const fall = before.mean - after.mean;
      if (fall > limit * error) {
        const figures = `${before.mean.toFixed(3)} to ${after.mean.toFixed(3)}`;
        this.#settle(
          name,
          'rolled-back',
          `accepted tokens per draft fell from ${figures}, by more than ${limit} standard errors`,
        );
        return;
      }
    }
    if (after.requests >= mostRequests) {
      const compared = before !== null && before.requests >= leastRequests;
      this.#settle(name, 'kept', compared ? null : `fewer than ${leastRequests} requests before it to compare with`);
    }
  }

  #settle(name: string, state: SwapRecord['state'], reason: string | null): void {
    const { previous, current, index } = this.#watches.get(name)!;
    const measured = this.#records.map((record) =>
      record.id === index ? { ...this.#measured(record), state, reason } : record,
    );
    this.#records = measured;
    this.#watches.delete(name);
    if (state === 'rolled-back') this.#put(previous);
    this.#retired.add(state === 'kept' ? previous : current);
    const record = measured.find(({ id }) => id === index);
    if (record !== undefined) this.#onDecision(record);
  }

  #put(served: GuardedServed): void {
    this.#current = this.#current.map((one) => (one.name === served.name ? served : one));
  }

  /** With the figures of this moment while it is watched. */
  #measured(record: SwapRecord): SwapRecord {
    const watch = this.#watches.get(record.drafter);
    if (watch === undefined || watch.index !== record.id) return record;
    const estimate = ({ drafter }: GuardedServed) => this.#samples.get(drafter)?.estimate() ?? null;
    return { ...record, before: estimate(watch.previous), after: estimate(watch.current) };
  }
}

function halfWidth(interval: readonly [number, number] | null): number {
  return interval === null ? Number.POSITIVE_INFINITY : (interval[1] - interval[0]) / 2;
}
