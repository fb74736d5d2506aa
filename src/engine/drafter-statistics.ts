/** What has come of each drafter's drafts since the engine started. */
import { type AcceptanceCounts, AcceptanceTally } from '../core/acceptance-tally.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';

interface Entry {
  requests: number;
  readonly tally: AcceptanceTally;
}

export class DrafterStatistics {
  readonly #entries = new Map<string, Entry>();

  onStart(drafter: string): void {
    this.#entry(drafter).requests += 1;
  }

  onRound(request: string, drafter: string, round: RoundRecord, shortBy: ShortDraftReason | null): void {
    this.#entry(drafter).tally.add(request, round, shortBy);
  }

  /** The request has ended. */
  onEnd(request: string, drafter: string): void {
    this.#entries.get(drafter)?.tally.end(request);
  }

  served(drafter: string): { readonly requests: number; readonly counts: AcceptanceCounts } {
    const { requests, tally } = this.#entry(drafter);
    return { requests, counts: tally.counts() };
  }

  #entry(drafter: string): Entry {
    const known = this.#entries.get(drafter);
    if (known !== undefined) return known;
    const entry = { requests: 0, tally: new AcceptanceTally() };
    this.#entries.set(drafter, entry);
    return entry;
  }
}
