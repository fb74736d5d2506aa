/** What has come of each drafter's drafts since the engine started. */
import { type AcceptanceCounts, AcceptanceTally } from '../core/acceptance-tally.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { ScoredShadow, ShadowStatus } from './engine.ts';
import { ShadowStatistics } from './shadow-statistics.ts';

interface Entry {
  requests: number;
  readonly tally: AcceptanceTally;
}

export class DrafterStatistics {
  readonly #entries = new Map<string, Entry>();
  readonly #shadows = new Map<string, ShadowStatistics>();

  onStart(drafter: string): void {
    this.#entry(drafter).requests += 1;
  }

  onRound(request: string, drafter: string, round: RoundRecord, shortBy: ShortDraftReason | null): void {
    this.#entry(drafter).tally.add(request, round, shortBy);
  }

  onShadow(request: string, scored: ScoredShadow): void {
    this.#shadow(scored.shadow).add(request, scored);
  }

  onShadowFailure(shadow: string, reason: string): void {
    this.#shadow(shadow).fail(reason);
  }

  /** The request has ended. */
  onEnd(request: string, drafter: string): void {
    this.#entries.get(drafter)?.tally.end(request);
    for (const shadow of this.#shadows.values()) shadow.end(request);
  }

  /** Null when it never was one. */
  shadow(drafter: string): ShadowStatus | null {
    return this.#shadows.get(drafter)?.status() ?? null;
  }

  served(drafter: string): { readonly requests: number; readonly counts: AcceptanceCounts } {
    const { requests, tally } = this.#entry(drafter);
    return { requests, counts: tally.counts() };
  }

  #shadow(drafter: string): ShadowStatistics {
    const known = this.#shadows.get(drafter) ?? new ShadowStatistics();
    this.#shadows.set(drafter, known);
    return known;
  }

  #entry(drafter: string): Entry {
    const known = this.#entries.get(drafter);
    if (known !== undefined) return known;
    const entry = { requests: 0, tally: new AcceptanceTally() };
    this.#entries.set(drafter, entry);
    return entry;
  }
}
