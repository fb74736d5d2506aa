/** Running counters of one drafter's rounds. */
import { ClusteredMean, type MeanEstimate } from './clustered-mean.ts';
import type { ShortDraftReason } from './speculation-record.ts';

export interface AcceptanceCounts {
  /** Rounds with a draft. */
  readonly numDrafts: number;
  readonly numDraftTokens: number;
  readonly numAcceptedTokens: number;
  /** Rounds whose draft reached a place, by place. */
  readonly proposedPerPos: readonly number[];
  /** Rounds whose draft token at a place was accepted, by place. */
  readonly acceptedPerPos: readonly number[];
  /** 1 + accepted tokens per draft, as vLLM has it; null without drafts. */
  readonly acceptanceLength: MeanEstimate | null;
  /** Rounds without a draft, by reason. */
  readonly noDraft: Readonly<Partial<Record<ShortDraftReason, number>>>;
  /** Rounds with a draft shorter than the request may have, by reason. */
  readonly shortened: Readonly<Partial<Record<ShortDraftReason, number>>>;
}

export class AcceptanceTally {
  readonly #length = new ClusteredMean();
  readonly #proposed: number[] = [];
  readonly #accepted: number[] = [];
  readonly #noDraft: Partial<Record<ShortDraftReason, number>> = {};
  readonly #shortened: Partial<Record<ShortDraftReason, number>> = {};
  #drafts = 0;
  #draftTokens = 0;
  #acceptedTokens = 0;

  /** @param request the answer that the round belongs to */
  add(request: string, { drafted, accepted }: { drafted: number; accepted: number }, shortBy: ShortDraftReason | null): void {
    if (shortBy !== null) {
      const counts = drafted === 0 ? this.#noDraft : this.#shortened;
      counts[shortBy] = (counts[shortBy] ?? 0) + 1;
    }
    if (drafted === 0) return;
    this.#drafts += 1;
    this.#draftTokens += drafted;
    this.#acceptedTokens += accepted;
    this.#length.add(request, 1 + accepted);
    for (let place = 0; place < drafted; place++) {
      this.#proposed[place] = (this.#proposed[place] ?? 0) + 1;
      this.#accepted[place] = (this.#accepted[place] ?? 0) + (place < accepted ? 1 : 0);
    }
  }

  /** No more rounds of this answer will come. */
  end(request: string): void {
    this.#length.end(request);
  }

  counts(): AcceptanceCounts {
    return {
      numDrafts: this.#drafts,
      numDraftTokens: this.#draftTokens,
      numAcceptedTokens: this.#acceptedTokens,
      proposedPerPos: [...this.#proposed],
      acceptedPerPos: [...this.#accepted],
      acceptanceLength: this.#length.estimate(),
      noDraft: { ...this.#noDraft },
      shortened: { ...this.#shortened },
    };
  }
}
