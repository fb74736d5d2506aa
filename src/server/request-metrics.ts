/** The `metrics` object of an answer, in vLLM's shape where vLLM has one. */
import { statisticsOfRecords } from '../core/acceptance-statistics.ts';
import type { FinishEvent } from '../core/decode-event.ts';
import type { SpeculationRecord } from '../core/speculation-record.ts';
import type { SpecMetricsLevel } from './server-config.ts';

export interface RequestMetricsOptions {
  readonly level: SpecMetricsLevel;
  readonly seed: number;
}

/** Statistics of one answer; of several answers together only the seed, as vLLM has it. */
export function requestMetrics(finishes: readonly FinishEvent[], options: RequestMetricsOptions) {
  const finish = finishes.length === 1 ? finishes[0] : undefined;
  const { level, seed } = options;
  return {
    ...(level === 'none'
      ? {}
      : { speculative_decoding: finish === undefined ? null : speculativeDecoding(finish.speculation, level === 'detailed') }),
    ...timing(finish),
    seed,
  };
}

/** What the access log says about speculation in all answers of a request. */
export function speculationSummary(finishes: readonly FinishEvent[]) {
  const records = finishes.map((finish) => finish.speculation);
  const drafterError = records.find((record) => record.drafterError !== null)?.drafterError;
  const noDraft = new Set(records.flatMap((record) => Object.keys(record.noDraft)));
  const statistics = statisticsOfRecords(records);
  return {
    drafter: records[0]?.drafter,
    acceptanceLength: rounded(statistics.meanAcceptanceLength),
    ...(noDraft.size === 0 ? {} : { noDraft: [...noDraft].join(',') }),
    ...(drafterError === undefined ? {} : { drafterError }),
  };
}

function speculativeDecoding(record: SpeculationRecord, isDetailed: boolean) {
  const statistics = statisticsOfRecords([record]);
  const drafted = record.rounds.filter((round) => round.drafted > 0);
  // Readers of vLLM's record take an answer that happened to need no draft for one that drafts did not help.
  const isPlain = record.maxDraftTokens === 0;
  return {
    mean_acceptance_length: statistics.meanAcceptanceLength ?? (isPlain ? null : 1),
    draft_acceptance_rate: statistics.draftAcceptanceRate ?? (isPlain ? null : 0),
    acceptance_histogram: statistics.acceptanceHistogram,
    acceptance_histogram_by_draft_length: statistics.acceptanceHistogramByDraftLength,
    num_spec_steps: statistics.numDrafts,
    num_accepted_draft_tokens: statistics.numAcceptedTokens,
    num_draft_tokens: statistics.numDraftTokens,
    num_spec_tokens: record.maxDraftTokens,
    ...(isDetailed
      ? {
          per_step_accepted: drafted.map((round) => round.accepted),
          per_step_drafted: drafted.map((round) => round.drafted),
        }
      : {}),
    drafter: record.drafter,
    no_draft_rounds: record.noDraft,
    shortened_rounds: record.shortened,
    drafter_error: record.drafterError,
  };
}

function timing(finish: FinishEvent | undefined) {
  if (finish === undefined) {
    return {
      time_to_first_token_ms: null,
      queue_time_ms: null,
      generation_time_ms: null,
      mean_itl_ms: null,
      tokens_per_second: null,
    };
  }
  const { queueMs, firstTokenMs, totalMs } = finish.timing;
  const generationMs = totalMs - queueMs;
  const laterTokens = finish.completionTokens - 1;
  return {
    time_to_first_token_ms: firstTokenMs,
    queue_time_ms: queueMs,
    generation_time_ms: generationMs,
    mean_itl_ms: firstTokenMs === null || laterTokens < 1 ? null : (totalMs - firstTokenMs) / laterTokens,
    tokens_per_second: generationMs > 0 ? (finish.completionTokens * 1000) / generationMs : null,
  };
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}
