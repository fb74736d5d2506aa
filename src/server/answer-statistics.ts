/** What an answer says of how it was made, in the dialects that were asked for; all of it derives from the records of its choices. */
import type { FinishEvent } from '../core/decode-event.ts';
import { timings } from './dialects/llama-cpp.ts';
import { metaInfo, specTokensDetails } from './dialects/sglang.ts';
import type { GenerationPlan } from './generation-plan.ts';
import { requestMetrics } from './request-metrics.ts';
import type { SpecMetricsLevel } from './server-config.ts';
import { traceLines } from './trace-lines.ts';

/** The parts of an answer that no event changes. */
export interface AnswerHead {
  readonly plan: GenerationPlan;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly systemFingerprint: string;
  readonly specMetrics: SpecMetricsLevel;
}

/** Fields of the choice. */
export function choiceStatistics({ id, params }: GenerationPlan, finish: FinishEvent): object {
  return params.details.metaInfo ? { meta_info: metaInfo(finish, id) } : {};
}

/** Fields of the answer: of a whole one, or of the chunk that tells its usage or ends its last choice. */
export function answerStatistics({ plan, specMetrics }: AnswerHead, finishes: readonly FinishEvent[]): object {
  const { details } = plan.params;
  const only = finishes.length === 1 ? finishes[0]! : null;
  return {
    metrics: requestMetrics(finishes, { level: specMetrics, seed: plan.seed }),
    ...(details.timings ? { timings: only === null ? null : timings(only) } : {}),
    ...(details.trace ? { trace: finishes.flatMap((finish, choice) => traceLines(finish, choice, plan.engine)) } : {}),
  };
}

/** Fields that SGLang puts in a chunk of their own, the last one; null when nothing was asked for. */
export function answerExtension({ params }: GenerationPlan, finishes: readonly FinishEvent[]): object | null {
  if (!params.details.specTokensDetails) return null;
  return { sglext: { spec_tokens_details: specTokensDetails(finishes.map(({ speculation }) => speculation)) } };
}
