/** From a request that was admitted to a sequence that takes part in rounds. */
import { Sequence, type SequenceOptions } from '../decode/sequence.ts';
import type { Target } from '../target/target.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
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
  const { prefix, drafting, failure } = begin(request, speculating, maxDraftTokens, context);
  const sequence = new Sequence({
    promptTokens: request.promptTokens,
    sampling: request.sampling,
    stopRule: text,
    maxTokens: Math.min(request.maxTokens ?? room, room),
    limitedBy,
    cache: prefix?.cache ?? target.openCache(),
    drafting: drafting ?? (context.drafters.length === 0 ? 'no-drafter' : 'disabled-by-request'),
  });
  if (failure !== null) sequence.dropDrafter(failure.error);
  return {
    sequence,
    text,
    drafter: speculating?.name ?? 'none',
    maxDraftTokens,
    cachedTokens: prefix?.length ?? 0,
  };
}

interface Beginning {
  readonly prefix: ReusedPrefix | null;
  readonly drafting: Exclude<SequenceOptions['drafting'], string> | null;
  /** Of the drafter: the sequence goes on without it. */
  readonly failure: { readonly error: unknown } | null;
}

function begin(
  { promptTokens, cacheSalt = null }: GenerateRequest,
  served: ServedDrafter | null,
  limit: number,
  { prefixes, running }: StartContext,
): Beginning {
  if (served !== null) {
    const { drafter, lengths } = served;
    try {
      const prefix = prefixes.reuse(promptTokens, cacheSalt, drafter, running);
      return { prefix, drafting: { drafter, state: prefix?.state ?? drafter.open(), limit, lengths }, failure: null };
    } catch (error) {
      return { prefix: null, drafting: null, failure: { error } };
    }
  }
  return { prefix: prefixes.reuse(promptTokens, cacheSalt, null, running), drafting: null, failure: null };
}
