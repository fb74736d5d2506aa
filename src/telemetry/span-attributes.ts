/** What spans say, by the conventions of OpenTelemetry for generative AI where they have a name, else by ours. */
import type { Attributes } from '@opentelemetry/api';
import { statisticsOfRecords } from '../core/acceptance-statistics.ts';
import type { FinishEvent } from '../core/decode-event.ts';
import type { ShortDraftReason, SpeculationRecord } from '../core/speculation-record.ts';
import type { GenerationPlan } from '../server/generation-plan.ts';
import type { RequestStart } from '../server/request-tracer.ts';

/** What asked, known from the first moment on. */
export function startAttributes({ requestId, transport, method, path }: RequestStart): Attributes {
  return {
    'url.path': path,
    'network.protocol.name': transport === 'ws' ? 'websocket' : 'http',
    ...(transport === 'http' ? { 'http.request.method': method } : {}),
    'blockdraft.request.id': requestId,
  };
}

/** `chat` or `text_completion`. */
export function operationOf(path: string): string {
  return path.endsWith('/chat/completions') ? 'chat' : 'text_completion';
}

/** What is asked for. No word of the prompt. */
export function planAttributes({ id, engine, params, requests, promptTokens, seed }: GenerationPlan): Attributes {
  const sampling = requests[0]?.sampling;
  return {
    'gen_ai.request.model': params.model ?? engine.info.model,
    'gen_ai.response.model': engine.info.model,
    'gen_ai.response.id': id,
    'gen_ai.request.choice.count': params.n,
    'gen_ai.request.seed': seed,
    ...(params.maxTokens === null ? {} : { 'gen_ai.request.max_tokens': params.maxTokens }),
    ...(sampling === undefined
      ? {}
      : {
          'gen_ai.request.temperature': sampling.temperature,
          'gen_ai.request.top_p': sampling.topP,
          ...(sampling.topK > 0 ? { 'gen_ai.request.top_k': sampling.topK } : {}),
        }),
    'gen_ai.usage.input_tokens': promptTokens,
  };
}

/** What came of all choices together. */
export function answerAttributes(finishes: readonly FinishEvent[]): Attributes {
  if (finishes.length === 0) return {};
  return {
    'gen_ai.usage.output_tokens': sum(finishes.map((finish) => finish.completionTokens)),
    'gen_ai.usage.cache_read.input_tokens': sum(finishes.map((finish) => finish.cachedTokens)),
    'gen_ai.response.finish_reasons': finishes.map((finish) => finish.reason),
    ...speculationAttributes(finishes.map((finish) => finish.speculation)),
  };
}

/** How drafts fared, by the formulas of docs/metrics.md; reasons are those of rounds without a draft, and of shorter ones. */
export function speculationAttributes(records: readonly SpeculationRecord[]): Attributes {
  const statistics = statisticsOfRecords(records);
  const error = records.find((record) => record.drafterError !== null)?.drafterError ?? null;
  return {
    'blockdraft.drafter': [...new Set(records.map((record) => record.drafter))].join(','),
    'blockdraft.rounds': sum(records.map((record) => record.rounds.length)),
    'blockdraft.drafts': statistics.numDrafts,
    'blockdraft.draft_tokens': statistics.numDraftTokens,
    'blockdraft.accepted_tokens': statistics.numAcceptedTokens,
    ...(statistics.meanAcceptanceLength === null ? {} : { 'blockdraft.acceptance_length': statistics.meanAcceptanceLength }),
    ...(statistics.draftAcceptanceRate === null ? {} : { 'blockdraft.acceptance_rate': statistics.draftAcceptanceRate }),
    ...reasonAttributes('blockdraft.rounds_without_draft', records, (record) => record.noDraft),
    ...reasonAttributes('blockdraft.rounds_shortened', records, (record) => record.shortened),
    ...(error === null ? {} : { 'blockdraft.drafter_error': error }),
  };
}

/** One attribute for each reason: how many rounds. */
function reasonAttributes(
  prefix: string,
  records: readonly SpeculationRecord[],
  read: (record: SpeculationRecord) => Readonly<Partial<Record<ShortDraftReason, number>>>,
): Attributes {
  const counts: Record<string, number> = {};
  for (const record of records) {
    for (const [reason, rounds] of Object.entries(read(record))) {
      const name = `${prefix}.${reason}`;
      counts[name] = (counts[name] ?? 0) + rounds;
    }
  }
  return counts;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
