/** Checks that what single answers say adds up to what the counters counted. Works on any engine behind the server. */
import { parsePrometheus, sumOf } from './prometheus-text.ts';

/** The parts of a response (whole, or the last chunk of a stream with `include_usage`) that are compared. */
export interface ReconcilableResponse {
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly metrics: {
    readonly speculative_decoding?: {
      readonly acceptance_histogram: readonly number[];
      readonly acceptance_histogram_by_draft_length: Readonly<Record<string, readonly number[]>>;
      readonly num_spec_steps: number;
      readonly num_accepted_draft_tokens: number;
      readonly num_draft_tokens: number;
      readonly no_draft_rounds: Readonly<Record<string, number>>;
    } | null;
  };
}

/**
 * Differences between the sums over the responses and the counter deltas, one sentence each; empty when all agree.
 * @param before `/metrics` before the first of the requests started.
 * @param after `/metrics` after the last has ended; nothing else may have run in between.
 * @param responses All answers of that time: one prompt and n = 1 each, none cancelled, statistics not switched off.
 */
export function reconcileMetrics(before: string, after: string, responses: readonly ReconcilableResponse[]): readonly string[] {
  const earlier = parsePrometheus(before);
  const later = parsePrometheus(after);
  const delta = (name: string, labels: Readonly<Record<string, string | number>> = {}) =>
    sumOf(later, `blockdraft:${name}`, labels) - sumOf(earlier, `blockdraft:${name}`, labels);
  const records = responses.map(({ metrics }) => {
    if (metrics.speculative_decoding == null) throw new Error('a response without statistics cannot be reconciled');
    return metrics.speculative_decoding;
  });
  const total = (value: (record: (typeof records)[number]) => number) =>
    records.reduce((sum, record) => sum + value(record), 0);
  const differences: string[] = [];
  const expectEqual = (what: string, counted: number, told: number): void => {
    if (counted !== told) differences.push(`${what}: the counter grew by ${counted}, the answers say ${told}`);
  };

  const cached = responses.reduce((sum, { usage }) => sum + usage.prompt_tokens_details.cached_tokens, 0);
  expectEqual(
    'prompt tokens',
    delta('prompt_tokens_total'),
    responses.reduce((sum, { usage }) => sum + usage.prompt_tokens, 0) - cached,
  );
  expectEqual('cached tokens', delta('prefix_cache_hits_total'), cached);
  expectEqual(
    'generation tokens',
    delta('generation_tokens_total'),
    responses.reduce((sum, { usage }) => sum + usage.completion_tokens, 0),
  );
  expectEqual('requests', delta('request_success_total'), responses.length);
  expectEqual(
    'drafts',
    delta('spec_decode_num_drafts_total'),
    total((record) => record.num_spec_steps),
  );
  expectEqual(
    'draft tokens',
    delta('spec_decode_num_draft_tokens_total'),
    total((record) => record.num_draft_tokens),
  );
  expectEqual(
    'accepted tokens',
    delta('spec_decode_num_accepted_tokens_total'),
    total((record) => record.num_accepted_draft_tokens),
  );

  const positions = Math.max(0, ...records.map((record) => record.acceptance_histogram.length - 1));
  for (let position = 0; position < positions; position++) {
    expectEqual(
      `accepted at position ${position}`,
      delta('spec_decode_num_accepted_tokens_per_pos_total', { position }),
      total((record) => sumFrom(record.acceptance_histogram, position + 1)),
    );
    expectEqual(
      `proposed at position ${position}`,
      delta('spec_decode_num_proposed_tokens_per_pos_total', { position }),
      total((record) =>
        Object.entries(record.acceptance_histogram_by_draft_length)
          .filter(([draftLength]) => Number(draftLength) > position)
          .reduce((sum, [, histogram]) => sum + sumFrom(histogram, 0), 0),
      ),
    );
  }
  const reasons = new Set(records.flatMap((record) => Object.keys(record.no_draft_rounds)));
  for (const reason of reasons) {
    expectEqual(
      `rounds without a draft (${reason})`,
      delta('spec_decode_rounds_without_draft_total', { reason }),
      total((record) => record.no_draft_rounds[reason] ?? 0),
    );
  }
  expectEqual(
    'rounds without a draft',
    delta('spec_decode_rounds_without_draft_total'),
    total((record) => Object.values(record.no_draft_rounds).reduce((sum, count) => sum + count, 0)),
  );
  return differences;
}

function sumFrom(histogram: readonly number[], start: number): number {
  return histogram.slice(start).reduce((sum, count) => sum + count, 0);
}
