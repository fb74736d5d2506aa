/** What is counted of requests and steps, and told to observers. */
import type { FinishEvent } from '../core/decode-event.ts';
import type { RoundOutcome, SequenceOutcome } from '../decode/round.ts';
import { DrafterStatistics } from './drafter-statistics.ts';
import type { DrafterSwaps } from './drafter-swaps.ts';
import type { AuditReport, EngineObserver, GenerateRequest, ScoredShadow, ServedRound } from './engine.ts';
import type { RunningRequest, Started } from './running-request.ts';

/** A request that took part in a round. */
export interface MovedRequest {
  readonly running: RunningRequest;
  readonly started: Started;
  readonly outcome: SequenceOutcome;
}

export class EngineReports {
  readonly statistics = new DrafterStatistics();
  readonly #observers: readonly EngineObserver[];
  readonly #swaps: DrafterSwaps;

  constructor(observers: readonly EngineObserver[], swaps: DrafterSwaps) {
    this.#observers = observers;
    this.#swaps = swaps;
  }

  /** @param queriedTokens of the prompt, that were looked up among the beginnings that are kept */
  onStart(request: GenerateRequest, { drafter, cachedTokens }: Started, queriedTokens: number): void {
    this.statistics.onStart(drafter);
    for (const observer of this.#observers) observer.onStart(request, { queriedTokens, cachedTokens });
  }

  onStep({ sequences, draftMs, verifyMs }: RoundOutcome, moved: readonly MovedRequest[]): void {
    const rounds = this.#rounds(moved);
    const shadows = this.#shadows(moved);
    for (const observer of this.#observers) {
      observer.onStep({
        durationMs: verifyMs,
        draftMs,
        sequences: sequences.length,
        promptRows: sequences.reduce((sum, outcome) => sum + outcome.promptRows, 0),
        decodeRows: sequences.reduce((sum, { round }) => sum + (round === null ? 0 : 1 + round.drafted), 0),
        emitted: sequences.reduce((sum, { emitted }) => sum + emitted.length, 0),
        rounds,
        shadows,
      });
    }
  }

  onFinish({ request, started }: RunningRequest, finish: FinishEvent): void {
    if (started !== null) this.statistics.onEnd(request.id, started.drafter);
    this.#swaps.onEnd(request.id);
    for (const [name, reason] of started?.sequence.shadowErrors ?? []) {
      this.statistics.onShadowFailure(name, reason);
      for (const observer of this.#observers) observer.onShadowFailure?.(name, reason);
    }
    for (const observer of this.#observers) observer.onFinish(request, finish);
  }

  onAudit(report: AuditReport): void {
    for (const observer of this.#observers) observer.onAudit?.(report);
  }

  /** What was verified, counted by drafter. */
  #rounds(moved: readonly MovedRequest[]): ServedRound[] {
    return moved.flatMap(({ running: { request }, started, outcome: { round, shortBy } }) => {
      if (round === null) return [];
      this.statistics.onRound(request.id, started.drafter, round, shortBy);
      const { drafterError } = started.sequence;
      if (started.given !== null) this.#swaps.onRound(request.id, started.given, { ...round, shortBy, drafterError });
      return [{ ...round, shortBy, drafter: started.drafter }];
    });
  }

  /** Shadow drafts that are decided, counted by drafter. */
  #shadows(moved: readonly MovedRequest[]): ScoredShadow[] {
    return moved.flatMap(({ running: { request }, started, outcome }) =>
      outcome.shadows.map((round) => {
        const scored = { ...round, drafter: started.drafter };
        this.statistics.onShadow(request.id, scored);
        return scored;
      }),
    );
  }
}
