/** One sequence being decoded: what is known of it, and what of that the target and the drafter have seen. */
import type { RoundTrace } from '../core/round-trace.ts';
import type { SamplingParams } from '../core/sampling-params.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { TokenLogprobs } from '../core/token-logprobs.ts';
import type { CommittedRows, Drafter, DraftState } from '../drafter/drafter.ts';
import type { LogitsProcessor } from '../sampling/logits-processor.ts';
import type { SequenceCache } from '../target/target.ts';
import type { LengthPolicy } from './draft-length/length-policy.ts';
import type { ShadowDraft, ShadowRound } from './shadow-draft.ts';
import type { Ending, StopRule } from './stop-rule.ts';

/** A drafter's part in a sequence. */
export interface Drafting {
  readonly drafter: Drafter;
  readonly state: DraftState;
  /** The longest draft wanted. */
  readonly limit: number;
  /** Decides how much of it is worth the time; shared by the drafter's sequences. */
  readonly lengths: LengthPolicy;
}

export interface SequenceOptions {
  readonly promptTokens: readonly TokenId[];
  readonly sampling: SamplingParams;
  readonly stopRule: StopRule;
  /** Tokens that may be emitted. */
  readonly maxTokens: number;
  /** Why no more may be: the request's limit or the context. */
  readonly limitedBy: 'max-tokens' | 'context';
  /** May hold a beginning of the prompt, but not all of it. Taken over. */
  readonly cache: SequenceCache;
  /** Taken over; it has observed what the cache holds. Or the reason why there is none. */
  readonly drafting: Drafting | Extract<ShortDraftReason, 'no-drafter' | 'disabled-by-request'>;
  /** Drafters that are scored beside it. Taken over; they have observed what the cache holds. */
  readonly shadows?: readonly ShadowDraft[];
  /** Keep of each round what happened token by token. Default false. */
  readonly trace?: boolean;
  /** Rules on what may be emitted; has seen no token of the answer. Taken over. Default: none. */
  readonly processor?: LogitsProcessor | null;
  /** How many rivals to tell of each emitted token; null: tell nothing. Default null. */
  readonly logprobs?: number | null;
  /** The same for the tokens of the prompt, none of which may be cached then. */
  readonly promptLogprobs?: number | null;
}

/**
 * Invariants between rounds: the cache holds the first `cache.length` of `tokens`, all of them but the last once the
 * prompt is through; a drafter has observed exactly the cached ones.
 */
export class Sequence implements Disposable {
  readonly sampling: SamplingParams;
  readonly cache: SequenceCache;
  readonly promptLength: number;
  readonly processor: LogitsProcessor | null;
  /** How many rivals to tell of each emitted token; null: tell nothing. */
  readonly logprobs: number | null;
  /** Of the prompt's tokens but the first, as far as they are computed; null unless they were asked for. */
  readonly promptLogprobs: TokenLogprobs[] | null;
  readonly promptRivals: number;
  readonly #tokens: TokenId[];
  readonly #stopRule: StopRule;
  readonly #maxTokens: number;
  readonly #limitedBy: SequenceOptions['limitedBy'];
  readonly #rounds: RoundRecord[] = [];
  readonly #noDraft = new Map<ShortDraftReason, number>();
  readonly #shortened = new Map<ShortDraftReason, number>();
  /** Null unless it was asked for. */
  readonly traces: RoundTrace[] | null;
  readonly #shadows: ShadowDraft[];
  readonly #shadowErrors = new Map<string, string>();
  #drafting: Drafting | null;
  #whyNotDrafting: ShortDraftReason;
  #drafterError: string | null = null;
  #ending: Ending | null = null;
  #ownsCache = true;

  constructor(options: SequenceOptions) {
    this.sampling = options.sampling;
    this.cache = options.cache;
    this.promptLength = options.promptTokens.length;
    this.processor = options.processor ?? null;
    this.logprobs = options.logprobs ?? null;
    this.promptLogprobs = (options.promptLogprobs ?? null) === null ? null : [];
    this.promptRivals = options.promptLogprobs ?? 0;
    this.#tokens = [...options.promptTokens];
    this.#stopRule = options.stopRule;
    this.#maxTokens = options.maxTokens;
    this.#limitedBy = options.limitedBy;
    this.traces = options.trace ? [] : null;
    this.#shadows = [...(options.shadows ?? [])];
    const { drafting } = options;
    this.#drafting = typeof drafting === 'string' ? null : drafting;
    this.#whyNotDrafting = typeof drafting === 'string' ? drafting : 'no-proposal';
  }

  /** Prompt and emitted tokens. */
  get tokens(): readonly TokenId[] {
    return this.#tokens;
  }

  get emitted(): number {
    return this.#tokens.length - this.promptLength;
  }

  /** Whether rows of the prompt are still to be told of. */
  get wantsPromptLogprobs(): boolean {
    return this.promptLogprobs !== null && this.emitted === 0;
  }

  get drafting(): Drafting | null {
    return this.#drafting;
  }

  get shadows(): readonly ShadowDraft[] {
    return this.#shadows;
  }

  /** What shadow drafters said when they failed, by name. */
  get shadowErrors(): ReadonlyMap<string, string> {
    return this.#shadowErrors;
  }

  /** Set once the answer has ended. */
  get ending(): Ending | null {
    return this.#ending;
  }

  get rounds(): readonly RoundRecord[] {
    return this.#rounds;
  }

  /** Rounds without draft tokens, by reason. */
  get noDraft(): ReadonlyMap<ShortDraftReason, number> {
    return this.#noDraft;
  }

  /** Rounds with fewer draft tokens than the limit, by reason. */
  get shortened(): ReadonlyMap<ShortDraftReason, number> {
    return this.#shortened;
  }

  get drafterError(): string | null {
    return this.#drafterError;
  }

  /** Tokens known but not yet cached; at least one until the answer has ended. */
  get uncached(): number {
    return this.#tokens.length - this.cache.length;
  }

  /** Draft tokens that the answer has room for: the target's own choice always follows them, and must be allowed too. */
  get draftRoom(): number {
    return Math.max(this.#maxTokens - this.emitted - 1, 0);
  }

  /** The longest draft of use in the next round, and why when that is less than the limit. */
  draftBudget(): { readonly budget: number; readonly reason: ShortDraftReason | null } {
    if (this.#drafting === null) return { budget: 0, reason: this.#whyNotDrafting };
    const { limit } = this.#drafting;
    const room = this.draftRoom;
    if (room >= limit) return { budget: limit, reason: null };
    return { budget: room, reason: this.#limitedBy === 'context' ? 'context-limit' : 'near-max-tokens' };
  }

  /** Takes the target's next choice; true when the answer ends with it. */
  emit(token: TokenId): boolean {
    this.#tokens.push(token);
    this.processor?.push(token);
    this.#ending = this.#stopRule.push(token);
    if (this.#ending === null && this.processor?.ended) this.#ending = { reason: 'stop', stopReason: null };
    if (this.#ending === null && this.emitted === this.#maxTokens) this.#ending = { reason: 'length', stopReason: null };
    return this.#ending !== null;
  }

  /** @param shortBy why the draft was shorter than the limit, null when it was not */
  record(round: RoundRecord, shortBy: ShortDraftReason | null): void {
    this.#rounds.push(round);
    if (shortBy === null) return;
    const counts = round.drafted === 0 ? this.#noDraft : this.#shortened;
    counts.set(shortBy, (counts.get(shortBy) ?? 0) + 1);
  }

  /** Tells the drafter and its shadows of rows that stay; one that fails is left out from here on. */
  observe(rows: CommittedRows): void {
    try {
      this.#drafting?.state.observe(rows);
    } catch (error) {
      this.dropDrafter(error);
    }
    for (const shadow of [...this.#shadows]) {
      try {
        shadow.state.observe(rows);
      } catch (error) {
        this.dropShadow(shadow, error);
      }
    }
  }

  /** Shadow drafts that are decided by a round. */
  settleShadows(served: RoundRecord | null): ShadowRound[] {
    if (served === null) return [];
    return this.#shadows.flatMap((shadow) => shadow.settle(this.#tokens, this.#ending !== null, served));
  }

  /** Goes on without a shadow, which has failed. */
  dropShadow(shadow: ShadowDraft, error: unknown): void {
    this.noteShadowError(shadow.name, error);
    this.#shadows.splice(this.#shadows.indexOf(shadow), 1);
    this.#closeShadow(shadow);
  }

  noteShadowError(name: string, error: unknown): void {
    this.#shadowErrors.set(name, messageOf(error));
  }

  /** Goes on without the drafter, which has failed: what it has seen of the sequence is no longer certain. */
  dropDrafter(error: unknown): void {
    this.#drafterError = messageOf(error);
    this.#whyNotDrafting = 'drafter-failed';
    this.#closeDrafting();
  }

  /** Leaves the cache to somebody else, who disposes of it. */
  giveUpCache(): SequenceCache {
    this.#ownsCache = false;
    return this.cache;
  }

  [Symbol.dispose](): void {
    this.processor?.[Symbol.dispose]();
    this.#closeDrafting();
    for (const shadow of this.#shadows.splice(0)) this.#closeShadow(shadow);
    if (this.#ownsCache) this.cache[Symbol.dispose]();
  }

  #closeShadow(shadow: ShadowDraft): void {
    try {
      shadow[Symbol.dispose]();
    } catch (error) {
      this.noteShadowError(shadow.name, error);
    }
  }

  #closeDrafting(): void {
    const drafting = this.#drafting;
    this.#drafting = null;
    try {
      drafting?.state[Symbol.dispose]();
    } catch (error) {
      // A drafter's fault must not take the sequence with it.
      this.#drafterError ??= messageOf(error);
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
