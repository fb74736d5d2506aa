/** From a request that was admitted to a sequence that takes part in rounds. */
import { Sequence, type SequenceOptions } from '../decode/sequence.ts';
import { ShadowDraft } from '../decode/shadow-draft.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';
import type { SequenceCache, Target } from '../target/target.ts';
import { phasesOf } from '../text/phases.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import type { MakeProcessor } from './answer-rules.ts';
import { AnswerText } from './answer-text.ts';
import type { GenerateRequest } from './engine.ts';
import type { PrefixCache, PrefixSource, ReusedPrefix } from './prefix-cache.ts';
import type { Started } from './running-request.ts';
import { findDrafter, type ServedDrafter } from './served-drafter.ts';

export interface StartContext {
  readonly target: Target;
  readonly drafters: readonly ServedDrafter[];
  readonly tokenizer: Tokenizer;
  readonly prefixes: PrefixCache;
  /** Sequences whose beginnings may be copied. */
  readonly running: readonly PrefixSource[];
  /** Drafters to be scored beside the one that serves. */
  readonly shadows: readonly ServedDrafter[];
  /** Of the request's rules. */
  readonly makeProcessor: MakeProcessor;
}

/** @throws whatever makes the request impossible; nothing is left open then */
export function startRequest(request: GenerateRequest, context: StartContext): Started {
  const { target, tokenizer } = context;
  const text = new AnswerText(request, tokenizer, target.facts.eosTokenIds);
  const room = target.facts.maxContext - request.promptTokens.length;
  const limitedBy = request.maxTokens !== null && request.maxTokens <= room ? 'max-tokens' : 'context';
  const chosen = findDrafter(context.drafters, request.drafter);
  const maxDraftTokens = chosen === null ? 0 : Math.min(request.draftTokens ?? chosen.draftTokens, chosen.draftTokens);
  const speculating = maxDraftTokens > 0 ? chosen : null;
  const { shadows, failures } = openShadows(request, context.shadows);
  const { prefix, drafting, failure } = begin(request, speculating, maxDraftTokens, context);
  let cache: SequenceCache;
  let processor: LogitsProcessor | null = null;
  try {
    processor = context.makeProcessor();
    cache = prefix?.cache ?? target.openCache();
  } catch (error) {
    for (const open of [processor, prefix?.cache, drafting?.state, ...shadows]) open?.[Symbol.dispose]();
    throw error;
  }
  const sequence = new Sequence({
    promptTokens: request.promptTokens,
    sampling: request.sampling,
    stopRule: text,
    maxTokens: Math.min(request.maxTokens ?? room, room),
    limitedBy,
    cache,
    drafting: drafting ?? (context.drafters.length === 0 ? 'no-drafter' : 'disabled-by-request'),
    shadows,
    trace: request.trace ?? false,
    processor,
    logprobs: request.logprobs ?? null,
    promptLogprobs: request.promptLogprobs ?? null,
  });
  for (const [name, error] of failures) sequence.noteShadowError(name, error);
  if (failure !== null) sequence.dropDrafter(failure.error);
  return {
    sequence,
    text,
    drafter: speculating?.name ?? 'none',
    given: speculating?.drafter ?? null,
    maxDraftTokens,
    cachedTokens: prefix?.length ?? 0,
    phases: () => phasesOf(tokenizer, sequence.tokens),
  };
}

function openShadows({ draftTokens }: GenerateRequest, drafters: readonly ServedDrafter[]) {
  const shadows: ShadowDraft[] = [];
  const failures = new Map<string, unknown>();
  for (const { name, drafter, draftTokens: longest } of drafters) {
    try {
      shadows.push(new ShadowDraft(name, drafter, drafter.open(), Math.min(draftTokens ?? longest, longest)));
    } catch (error) {
      failures.set(name, error);
    }
  }
  return { shadows, failures };
}

interface Beginning {
  readonly prefix: ReusedPrefix | null;
  readonly drafting: Exclude<SequenceOptions['drafting'], string> | null;
  /** Of the drafter: the sequence goes on without it. */
  readonly failure: { readonly error: unknown } | null;
}

function begin(
  { promptTokens, promptLogprobs = null, cacheSalt = null }: GenerateRequest,
  served: ServedDrafter | null,
  limit: number,
  { prefixes, running, shadows }: StartContext,
): Beginning {
  // Shadows have to see every row, and know none of an earlier sequence; rows that are told of have to be computed.
  const reuse = (drafter: Drafter | null) =>
    shadows.length > 0 || promptLogprobs !== null ? null : prefixes.reuse(promptTokens, cacheSalt, drafter, running);
  if (served !== null) {
    const { drafter, lengths } = served;
    try {
      const prefix = reuse(drafter);
      return { prefix, drafting: { drafter, state: prefix?.state ?? drafter.open(), limit, lengths }, failure: null };
    } catch (error) {
      return { prefix: null, drafting: null, failure: { error } };
    }
  }
  return { prefix: reuse(null), drafting: null, failure: null };
}
