/** The counters behind `/metrics`, fed by the engine's observer calls. Rates are for the reader to compute. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { FinishEvent } from '../core/decode-event.ts';
import type { EngineLoad, EngineObserver, GenerateRequest, StartReport, StepReport } from '../engine/engine.ts';
import { createDrafterMetrics } from './drafter-metrics.ts';
import {
  INTER_TOKEN_BUCKETS,
  ITERATION_BUCKETS,
  LATENCY_BUCKETS,
  STEP_BUCKETS,
  TTFT_BUCKETS,
  tokenBuckets,
} from './metric-buckets.ts';

const PREFIX = 'blockdraft:';
const VLLM_PREFIX = 'vllm:';

export interface ServerMetricsOptions {
  /** Value of the `model_name` label. */
  readonly modelName: string;
  readonly version: string;
  /** Loads at the moment of reading; null while no engine runs. */
  readonly load: () => EngineLoad | null;
  /** Repeat every metric that vLLM has under vLLM's own prefix. Default false. */
  readonly vllmAliases?: boolean;
  /** Whether a synthetic drafter is served. Default false. */
  readonly synthetic?: boolean;
  /** Metrics of the Node process itself. Default true. */
  readonly processMetrics?: boolean;
}

/** Counts what the engine does, what the server refuses, and prints both. */
export interface ServerMetrics extends EngineObserver {
  /** A gap between two deliveries of tokens of one answer. */
  onTokenGap(gapMs: number): void;
  /** A request that a full queue had no room for, by the limit that it reached. */
  onRejection(limit: string): void;
  /** An answer that ended in an error, by the error's code. */
  onError(code: string): void;
  readonly contentType: string;
  /** The text of `/metrics`. */
  render(): Promise<string>;
}

/** Creates the registry; one per server. */
export function createServerMetrics(options: ServerMetricsOptions): ServerMetrics {
  const registry = new Registry();
  const vllmNames: string[] = [];
  const model_name = options.modelName;
  const registers = [registry];

  /** `own`: a name that vLLM does not have. */
  const named = (name: string, own: boolean): string => {
    if (!own) vllmNames.push(PREFIX + name);
    return PREFIX + name;
  };
  const counter = <Label extends string = never>(name: string, help: string, label?: Label, own = false) => {
    const labelNames = label === undefined ? ['model_name'] : ['model_name', label];
    const metric = new Counter<string>({ name: named(name, own), help, labelNames, registers });
    if (label === undefined) metric.inc({ model_name }, 0);
    return (value: number, labelValue?: string | number): void => {
      metric.inc(label === undefined ? { model_name } : { model_name, [label]: labelValue! }, value);
    };
  };
  const histogram = (name: string, help: string, buckets: readonly number[], own = false) => {
    const metric = new Histogram({
      name: named(name, own),
      help,
      labelNames: ['model_name'],
      buckets: [...buckets],
      registers,
    });
    metric.zero({ model_name });
    return (value: number): void => metric.observe({ model_name }, value);
  };
  const gauge = (name: string, help: string, read: (load: EngineLoad) => number) => {
    new Gauge({
      name: named(name, false),
      help,
      labelNames: ['model_name'],
      registers,
      collect() {
        const load = options.load();
        this.set({ model_name }, load === null ? 0 : read(load));
      },
    });
  };

  const drafts = counter('spec_decode_num_drafts_total', 'Rounds that verified a draft.');
  const draftTokens = counter('spec_decode_num_draft_tokens_total', 'Draft tokens handed to verification.');
  const acceptedTokens = counter('spec_decode_num_accepted_tokens_total', 'Draft tokens accepted and emitted.');
  const acceptedPerPosition = counter(
    'spec_decode_num_accepted_tokens_per_pos_total',
    'Draft tokens accepted and emitted, by place in the draft (0-based).',
    'position',
  );
  const evaluatedTokens = counter(
    'spec_decode_num_evaluated_tokens_total',
    "Draft tokens compared with the target's choice.",
    undefined,
    true,
  );
  const proposedPerPosition = counter(
    'spec_decode_num_proposed_tokens_per_pos_total',
    'Draft tokens handed to verification, by place in the draft (0-based).',
    'position',
    true,
  );
  const withoutDraft = counter(
    'spec_decode_rounds_without_draft_total',
    'Rounds that had no draft, by reason.',
    'reason',
    true,
  );
  const shortened = counter(
    'spec_decode_rounds_shortened_total',
    'Rounds that verified some draft tokens, but fewer than the request may have, by reason.',
    'reason',
    true,
  );
  const promptTokens = counter('prompt_tokens_total', 'Prompt tokens computed.');
  const prefixQueries = counter('prefix_cache_queries_total', 'Prompt tokens looked up among the beginnings that are kept.');
  const prefixHits = counter('prefix_cache_hits_total', 'Prompt tokens found there, which were not computed.');
  const generationTokens = counter('generation_tokens_total', 'Tokens emitted.');
  const success = counter('request_success_total', 'Answers that ended, by reason.', 'finished_reason');
  const rejections = counter(
    'admission_rejections_total',
    'Requests that the queue had no room for, by the limit that they reached.',
    'reason',
  );
  const quarantines = counter(
    'drafter_quarantines_total',
    'Times that a drafter did not answer in time and was left out for a while.',
    'drafter',
    true,
  );
  const fewerSequences = counter(
    'step_sequence_reductions_total',
    'Times that steps had to serve fewer sequences, as what more of them need could not be loaded.',
    undefined,
    true,
  );
  const audits = counter(
    'self_audits_total',
    'Answers that were decoded again without speculation, by outcome: equal, different, failed.',
    'outcome',
    true,
  );
  const errors = counter('request_errors_total', 'Requests that ended in an error, by code.', 'code', true);

  const byDrafter = createDrafterMetrics(registry, PREFIX, model_name);

  gauge('num_requests_running', 'Sequences that take part in steps.', (load) => load.running);
  gauge('num_requests_waiting', 'Requests that wait for a free sequence.', (load) => load.waiting);
  gauge(
    'kv_cache_usage_perc',
    'Share of the memory for caches that running requests have reserved, 0 to 1.',
    (load) => load.cacheUsage,
  );

  const stepSeconds = histogram('step_seconds', 'Duration of a target step.', STEP_BUCKETS, true);
  const draftSeconds = histogram(
    'draft_seconds',
    'Time a step spent drafting; steps without drafting are left out.',
    STEP_BUCKETS,
    true,
  );
  const iterationTokens = histogram('iteration_tokens_total', 'Prompt tokens and emitted tokens of a step.', ITERATION_BUCKETS);
  const firstToken = histogram(
    'time_to_first_token_seconds',
    'From acceptance of the request to its first token.',
    TTFT_BUCKETS,
  );
  const interToken = histogram(
    'inter_token_latency_seconds',
    'Gap between two deliveries of tokens of one answer; a round is one delivery.',
    INTER_TOKEN_BUCKETS,
  );
  const perOutputToken = histogram(
    'request_time_per_output_token_seconds',
    "A request's time after its first token, divided by the tokens after it.",
    INTER_TOKEN_BUCKETS,
  );
  const endToEnd = histogram('e2e_request_latency_seconds', 'From acceptance of the request to its end.', LATENCY_BUCKETS);
  const queueTime = histogram('request_queue_time_seconds', 'Waiting for a free sequence.', LATENCY_BUCKETS);
  const inferenceTime = histogram('request_inference_time_seconds', 'From a free sequence to the end.', LATENCY_BUCKETS);
  const prefillTime = histogram('request_prefill_time_seconds', 'From a free sequence to the first token.', LATENCY_BUCKETS);
  const decodeTime = histogram('request_decode_time_seconds', 'From the first token to the end.', LATENCY_BUCKETS);
  const requestPrompt = histogram('request_prompt_tokens', 'Tokens of a prompt.', tokenBuckets());
  const requestGeneration = histogram('request_generation_tokens', 'Tokens of an answer.', tokenBuckets());

  new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; the labels say what runs.',
    labelNames: ['model_name', 'version', 'node_version'],
    registers,
  }).set({ model_name, version: options.version, node_version: process.version }, 1);
  new Gauge({
    name: `${PREFIX}synthetic_acceptance`,
    help: '1 when drafts are kept by given rates and the text is worth nothing, else 0.',
    labelNames: ['model_name'],
    registers,
  }).set({ model_name }, options.synthetic ? 1 : 0);
  // No sum over servers may take in what is worth nothing unseen.
  if (options.synthetic) registry.setDefaultLabels({ synthetic: 'true' });
  if (options.processMetrics ?? true) collectDefaultMetrics({ register: registry });

  return {
    onStart(_request: GenerateRequest, start: StartReport): void {
      prefixQueries(start.queriedTokens);
      prefixHits(start.cachedTokens);
    },
    onStep(step: StepReport): void {
      stepSeconds(step.durationMs / 1000);
      if (step.draftMs > 0) draftSeconds(step.draftMs / 1000);
      promptTokens(step.promptRows);
      generationTokens(step.emitted);
      iterationTokens(step.promptRows + step.emitted);
      for (const scored of step.shadows) byDrafter.onShadow(scored);
      for (const round of step.rounds) {
        if (round.shortBy !== null) (round.drafted === 0 ? withoutDraft : shortened)(1, round.shortBy);
        byDrafter.onRound(round);
        if (round.drafted === 0) continue;
        drafts(1);
        draftTokens(round.drafted);
        evaluatedTokens(round.evaluated);
        acceptedTokens(round.accepted);
        for (let position = 0; position < round.drafted; position++) {
          proposedPerPosition(1, position);
          // Adding 0 makes the position appear, so that a ratio of the two exists from the first proposal.
          acceptedPerPosition(position < round.accepted ? 1 : 0, position);
        }
      }
    },
    onFinish(_request: GenerateRequest, finish: FinishEvent): void {
      const { queueMs, firstTokenMs, totalMs } = finish.timing;
      byDrafter.onFinish(finish.speculation.drafter);
      success(1, finish.reason === 'aborted' ? 'abort' : finish.reason);
      requestPrompt(finish.promptTokens);
      requestGeneration(finish.completionTokens);
      endToEnd(totalMs / 1000);
      queueTime(queueMs / 1000);
      inferenceTime((totalMs - queueMs) / 1000);
      if (firstTokenMs === null) return;
      firstToken(firstTokenMs / 1000);
      prefillTime((firstTokenMs - queueMs) / 1000);
      decodeTime((totalMs - firstTokenMs) / 1000);
      const laterTokens = finish.completionTokens - 1;
      if (laterTokens > 0) perOutputToken((totalMs - firstTokenMs) / laterTokens / 1000);
    },
    onQuarantine: (drafter) => quarantines(1, drafter),
    onFewerSequences: () => fewerSequences(1),
    onShadowFailure: (drafter) => byDrafter.onShadowFailure(drafter),
    onSwap: ({ drafter, state }) => byDrafter.onSwap(drafter, state),
    onSwapFailure: (drafter) => byDrafter.onSwap(drafter, 'failed'),
    onAudit: ({ outcome }) => audits(1, outcome),
    onTokenGap: (gapMs) => interToken(gapMs / 1000),
    onRejection: (limit) => rejections(1, limit),
    onError: (code) => errors(1, code),
    contentType: registry.contentType,
    async render(): Promise<string> {
      const text = await registry.metrics();
      return options.vllmAliases === true ? text + aliases(text, new Set(vllmNames)) : text;
    },
  };
}

/** The blocks of the named metrics again under vLLM's prefix, from the same reading so that the values agree. */
function aliases(text: string, names: ReadonlySet<string>): string {
  const blocks = text.split(/\n(?=# HELP )/);
  const known = blocks.filter((block) => names.has(/^# HELP (\S+)/.exec(block)?.[1] ?? ''));
  return known.map((block) => `${block.replace(/^(# (?:HELP|TYPE) )?blockdraft:/gm, `$1${VLLM_PREFIX}`).trimEnd()}\n`).join('');
}
