import { AcceptanceTally } from '../core/acceptance-tally.ts';
import type { EngineLoad, EngineObserver, StepReport } from '../engine/engine.ts';
import type { Logger } from '../server/logger.ts';

export interface StatisticsLogOptions {
  readonly logger: Logger;
  /** Loads at the moment of a line; null while no engine runs. */
  readonly load: () => EngineLoad | null;
  readonly intervalMs: number;
  /** Whether a synthetic drafter is served, so that its acceptance is no drafter's. Default false. */
  readonly synthetic?: boolean;
}

/** One line for each interval in which a step ran: what came through, and how drafts fared, by the formulas of docs/metrics.md. */
export class StatisticsLog implements EngineObserver, Disposable {
  readonly #options: StatisticsLogOptions;
  readonly #timer: NodeJS.Timeout;
  #acceptance = new AcceptanceTally();
  #steps = 0;
  #promptTokens = 0;
  #emitted = 0;
  #since = performance.now();

  constructor(options: StatisticsLogOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#tell(), options.intervalMs);
    this.#timer.unref();
  }

  onStart(): void {
    // What is looked up is in the metrics.
  }

  onStep({ promptRows, emitted, rounds }: StepReport): void {
    this.#steps += 1;
    this.#promptTokens += promptRows;
    this.#emitted += emitted;
    for (const round of rounds) this.#acceptance.add('all', round, round.shortBy);
  }

  onFinish(): void {
    // Each request has its own line.
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tell(): void {
    const now = performance.now();
    const seconds = (now - this.#since) / 1000;
    if (this.#steps > 0) this.#options.logger.info(this.#facts(seconds), 'statistics');
    this.#acceptance = new AcceptanceTally();
    this.#steps = 0;
    this.#promptTokens = 0;
    this.#emitted = 0;
    this.#since = now;
  }

  #facts(seconds: number) {
    const { numDrafts, numDraftTokens, numAcceptedTokens, acceptedPerPos, noDraft } = this.#acceptance.counts();
    const speculation =
      numDrafts === 0
        ? {}
        : {
            acceptanceLength: rounded(1 + numAcceptedTokens / numDrafts),
            acceptedTokensPerSecond: rounded(numAcceptedTokens / seconds),
            draftedTokensPerSecond: rounded(numDraftTokens / seconds),
            acceptedTokens: numAcceptedTokens,
            draftTokens: numDraftTokens,
            acceptanceByPosition: acceptedPerPos.map((accepted) => rounded(accepted / numDrafts)),
            acceptanceRate: rounded(numAcceptedTokens / numDraftTokens),
          };
    return {
      ...(this.#options.synthetic ? { synthetic: true } : {}),
      ...this.#options.load(),
      promptTokensPerSecond: rounded(this.#promptTokens / seconds),
      tokensPerSecond: rounded(this.#emitted / seconds),
      ...speculation,
      ...(Object.keys(noDraft).length === 0 ? {} : { roundsWithoutDraft: noDraft }),
    };
  }
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
