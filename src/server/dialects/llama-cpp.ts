/** Statistics of one answer under llama.cpp's names and by its definitions. */
import { statisticsOfRecords } from '../../core/acceptance-statistics.ts';
import type { FinishEvent } from '../../core/decode-event.ts';

/** `timings`: tokens computed and emitted, and what they took; a rate is null where its divisor is 0. */
export function timings(finish: FinishEvent) {
  const { queueMs, firstTokenMs, totalMs } = finish.timing;
  const promptTokens = finish.promptTokens - finish.cachedTokens;
  const promptMs = (firstTokenMs ?? totalMs) - queueMs;
  const predictedMs = firstTokenMs === null ? 0 : totalMs - firstTokenMs;
  const statistics = statisticsOfRecords([finish.speculation]);
  return {
    cache_n: finish.cachedTokens,
    prompt_n: promptTokens,
    prompt_ms: promptMs,
    prompt_per_token_ms: ratio(promptMs, promptTokens),
    prompt_per_second: ratio(promptTokens * 1000, promptMs),
    predicted_n: finish.completionTokens,
    predicted_ms: predictedMs,
    predicted_per_token_ms: ratio(predictedMs, finish.completionTokens),
    predicted_per_second: ratio(finish.completionTokens * 1000, predictedMs),
    ...(statistics.numDraftTokens === 0
      ? {}
      : { draft_n: statistics.numDraftTokens, draft_n_accepted: statistics.numAcceptedTokens }),
  };
}

function ratio(dividend: number, divisor: number): number | null {
  return divisor === 0 ? null : dividend / divisor;
}
