/** Statistics of answers under SGLang's names and by its definitions. */
import { statisticsOfRecords } from '../../core/acceptance-statistics.ts';
import type { FinishEvent } from '../../core/decode-event.ts';
import type { SpeculationRecord } from '../../core/speculation-record.ts';

/** `sglext.spec_tokens_details`, pooled over all answers of a request; null where no draft was verified. */
export function specTokensDetails(records: readonly SpeculationRecord[]) {
  const statistics = statisticsOfRecords(records);
  if (statistics.numDrafts === 0) return null;
  const lookAhead = records.reduce(
    (sum, { rounds, maxDraftTokens }) => sum + maxDraftTokens * rounds.filter(({ drafted }) => drafted > 0).length,
    0,
  );
  return {
    spec_verify_ct: statistics.numDrafts,
    spec_accept_length: statistics.completionPerVerify,
    spec_accept_rate: statistics.numAcceptedTokens / lookAhead,
    spec_num_correct_drafts: statistics.numAcceptedTokens,
    spec_num_proposed_drafts: statistics.numDraftTokens,
    spec_correct_drafts_histogram: statistics.acceptanceHistogram,
  };
}

/** `meta_info` of one choice; what is said of speculation also under the names of SGLang's earlier versions. */
export function metaInfo(finish: FinishEvent, id: string) {
  const details = specTokensDetails([finish.speculation]);
  return {
    id,
    finish_reason:
      finish.reason === 'length'
        ? { type: 'length', length: finish.completionTokens }
        : { type: finish.reason, matched: finish.stopReason },
    prompt_tokens: finish.promptTokens,
    completion_tokens: finish.completionTokens,
    cached_tokens: finish.cachedTokens,
    e2e_latency: finish.timing.totalMs / 1000,
    ...(details === null
      ? {}
      : {
          ...details,
          spec_accept_token_num: details.spec_num_correct_drafts,
          spec_draft_token_num: details.spec_num_proposed_drafts,
          spec_accept_histogram: details.spec_correct_drafts_histogram,
        }),
  };
}
