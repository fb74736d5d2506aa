/** The facts about one request that the access log and the latency metrics need, gathered as its events pass by. */
import type { FinishEvent } from '../core/decode-event.ts';
import type { ChoiceEvent } from './choice-events.ts';
import type { Clock } from './clock.ts';
import type { GenerationPlan } from './generation-plan.ts';
import type { ServerMetrics } from './metrics.ts';
import type { RequestTrace } from './request-tracer.ts';

export class AnswerRecord {
  promptTokens = 0;
  completionTokens = 0;
  readonly finishes: FinishEvent[] = [];
  readonly #trace: RequestTrace | null;

  /** @param trace is told what is asked for; null: nobody is */
  constructor(trace: RequestTrace | null = null) {
    this.#trace = trace;
  }

  begin(plan: GenerationPlan): void {
    this.promptTokens = plan.promptTokens;
    this.#trace?.planned(plan);
  }

  /** Hands the events through unchanged. */
  async *observe(
    events: AsyncIterable<ChoiceEvent>,
    metrics: Pick<ServerMetrics, 'onTokenGap'>,
    clock: Clock,
  ): AsyncGenerator<ChoiceEvent, void, undefined> {
    const lastDelivery = new Map<number, number>();
    for await (const arrival of events) {
      const { choice, event } = arrival;
      if (event.type === 'finish') {
        this.finishes.push(event);
      } else if (event.tokens.length > 0) {
        this.completionTokens += event.tokens.length;
        const time = clock.monotonicMs();
        const last = lastDelivery.get(choice);
        if (last !== undefined) metrics.onTokenGap(time - last);
        lastDelivery.set(choice, time);
      }
      yield arrival;
    }
  }
}
