/** One sequence being decoded: what is known of it, and what of that the target and the drafter have seen. */
import type { SamplingParams } from '../core/sampling-params.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { Drafter, DraftState } from '../drafter/drafter.ts';
import type { SequenceCache } from '../target/target.ts';
import type { LengthPolicy } from './draft-length/length-policy.ts';
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
}

/**
 * Invariants between rounds: the cache holds the first `cache.length` of `tokens`, all of them but the last once the
 * prompt is through; a drafter has observed exactly the cached ones.
 */
export class Sequence implements Disposable {
  readonly sampling: SamplingParams;
  readonly cache: SequenceCache;
  readonly promptLength: number;
  readonly #tokens: TokenId[];
  readonly #stopRule: StopRule;
  readonly #maxTokens: number;
  readonly #limitedBy: SequenceOptions['limitedBy'];
  readonly #rounds: RoundRecord[] = [];
  readonly #noDraft = new Map<ShortDraftReason, number>();
  readonly #shortened = new Map<ShortDraftReason, number>();
  #drafting: Drafting | null;
  #whyNotDrafting: ShortDraftReason;
  #drafterError: string | null = null;
  #ending: Ending | null = null;
  #ownsCache = true;

  constructor(options: SequenceOptions) {
    this.sampling = options.sampling;
    this.cache = options.cache;
    this.promptLength = options.promptTokens.length;
    this.#tokens = [...options.promptTokens];
    this.#stopRule = options.stopRule;
    this.#maxTokens = options.maxTokens;
    this.#limitedBy = options.limitedBy;
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

  get drafting(): Drafting | null {
    return this.#drafting;
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

  /** The longest draft of use in the next round, and why when that is less than the limit. */
  draftBudget(): { readonly budget: number; readonly reason: ShortDraftReason | null } {
    if (this.#drafting === null) return { budget: 0, reason: this.#whyNotDrafting };
    const { limit } = this.#drafting;
    // The target's own choice always follows the draft, and must be allowed too.
    const room = Math.max(this.#maxTokens - this.emitted - 1, 0);
    if (room >= limit) return { budget: limit, reason: null };
    return { budget: room, reason: this.#limitedBy === 'context' ? 'context-limit' : 'near-max-tokens' };
  }

  /** Takes the target's next choice; true when the answer ends with it. */
  emit(token: TokenId): boolean {
    this.#tokens.push(token);
    this.#ending = this.#stopRule.push(token);
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
    this.#closeDrafting();
    if (this.#ownsCache) this.cache[Symbol.dispose]();
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
