/** What would have come of one shadow drafter's drafts. */
import { AcceptanceTally } from '../core/acceptance-tally.ts';
import { ClusteredMean } from '../core/clustered-mean.ts';
import type { PairedStatus, ScoredShadow, ShadowStatus } from './engine.ts';

interface Pairs {
  readonly difference: ClusteredMean;
  readonly positions: { pairs: number; shadow: number; served: number }[];
}

export class ShadowStatistics {
  readonly #tally = new AcceptanceTally();
  /** By the drafter that served. */
  readonly #pairs = new Map<string, Pairs>();
  #failures = 0;
  #lastFailure: string | null = null;

  add(request: string, { drafted, accepted, served, drafter }: ScoredShadow): void {
    this.#tally.add(request, { drafted, accepted }, null);
    const length = Math.min(drafted, served.drafted);
    if (length === 0) return;
    const pairs = this.#pairs.get(drafter) ?? { difference: new ClusteredMean(), positions: [] };
    this.#pairs.set(drafter, pairs);
    pairs.difference.add(request, Math.min(accepted, length) - Math.min(served.accepted, length));
    for (let place = 0; place < length; place++) {
      const position = pairs.positions[place] ?? { pairs: 0, shadow: 0, served: 0 };
      pairs.positions[place] = position;
      position.pairs += 1;
      position.shadow += Number(accepted > place);
      position.served += Number(served.accepted > place);
    }
  }

  fail(reason: string): void {
    this.#failures += 1;
    this.#lastFailure = reason;
  }

  /** The request has ended. */
  end(request: string): void {
    this.#tally.end(request);
    for (const { difference } of this.#pairs.values()) difference.end(request);
  }

  status(): ShadowStatus {
    return {
      failures: this.#failures,
      lastFailure: this.#lastFailure,
      counts: this.#tally.counts(),
      paired: [...this.#pairs].map(([served, { difference, positions }]): PairedStatus => {
        return { served, difference: difference.estimate()!, positions: positions.map((position) => ({ ...position })) };
      }),
    };
  }
}
