/** PORT between the engine and everything that serves or measures it. */
import type { AcceptanceCounts } from '../core/acceptance-tally.ts';
import type { MeanEstimate } from '../core/clustered-mean.ts';
import type { DecodeEvent, FinishEvent } from '../core/decode-event.ts';
import type { SamplingParams } from '../core/sampling-params.ts';
import type { RoundRecord, ShortDraftReason } from '../core/speculation-record.ts';
import type { TokenId } from '../core/token.ts';
import type { TokenRules } from '../core/token-rules.ts';

export interface GenerateRequest {
  /** Unique among running requests; appears in logs. */
  readonly id: string;
  readonly promptTokens: readonly TokenId[];
  readonly sampling: SamplingParams;
  /** Largest number of tokens to emit; at least 1. Null: whatever the context leaves. */
  readonly maxTokens: number | null;
  /** Stop tokens beside the model's own end-of-sequence ids. */
  readonly stopTokenIds: readonly TokenId[];
  readonly stopStrings: readonly string[];
  /** Keep the matched stop string at the end of the text. */
  readonly includeStopString: boolean;
  /** Do not stop at the model's end-of-sequence ids. */
  readonly ignoreEos: boolean;
  /** Leave special tokens out of the text. */
  readonly skipSpecialTokens: boolean;
  /** Special tokens that stay in the text all the same. Default: none. */
  readonly shownTokens?: readonly TokenId[];
  /** Name of the drafter; null: the default one. `none`: decode plainly, with the same tokens as a result. */
  readonly drafter: string | null;
  /** Upper limit on the length of each draft; null: the server's. */
  readonly draftTokens: number | null;
  /** Lower ones are served earlier: a step is worth as much as ten seconds of waiting. Default 0. */
  readonly priority?: number;
  /** Beginnings of sequences are shared among requests of the same salt only. Default: none. */
  readonly cacheSalt?: string | null;
  /** Tell at the end what happened in each round, token by token. Default false. */
  readonly trace?: boolean;
  /** Rules on what may be emitted. Default: none. */
  readonly rules?: TokenRules;
  /** How many rivals to tell of each emitted token; null: tell nothing. Default null. */
  readonly logprobs?: number | null;
  /** The same for the tokens of the prompt, all of which are computed then. Default null. */
  readonly promptLogprobs?: number | null;
}

/** What of a request decides whether it finds room. */
export type QueuedRequest = Pick<GenerateRequest, 'promptTokens' | 'maxTokens' | 'drafter'>;

/** A message as chat templates know it; only what it has is there. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly name?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ChatToolCall[];
  readonly tool_call_id?: string;
}

/** A call that the assistant made earlier. */
export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  /** The arguments as JSON values. */
  readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
}

/** How messages become a prompt. */
export interface ChatOptions {
  /** End with what opens the assistant's answer. */
  readonly addGenerationPrompt: boolean;
  /** End inside the last message, so that the model goes on with it. */
  readonly continueFinalMessage: boolean;
  /** Function descriptions in OpenAI's format; null: none. */
  readonly tools: readonly object[] | null;
  /** Further variables of the chat template. */
  readonly variables: Readonly<Record<string, string | number | boolean>>;
}

/** What is served; fixed for the life of the engine. */
export interface EngineInfo {
  /** Name under which the model is served. */
  readonly model: string;
  /** Seconds since the epoch when the engine became ready. */
  readonly created: number;
  /** Positions a sequence may have, prompt and answer together. */
  readonly maxContext: number;
  readonly maxSequences: number;
  readonly vocabSize: number;
  /** The default drafter first; empty for plain decoding only. */
  readonly drafters: readonly DrafterInfo[];
  /** Variables that the model's chat template reads, `tools` among them where it shows them. */
  readonly chatVariables: readonly string[];
  /** Defaults that the model folder's generation_config.json asks for. */
  readonly samplingDefaults: Readonly<Partial<Omit<SamplingParams, 'seed'>>>;
}

/** A drafter that requests can ask for. */
export interface DrafterInfo {
  readonly name: string;
  /** `dflash`, `ngram`, … */
  readonly kind: string;
  /** The longest draft that a request can get. */
  readonly maxDraftTokens: number;
  /** Its drafts are kept by given rates, whatever the target says: answers made with it are no answers of the model. */
  readonly synthetic: boolean;
}

/** What is in force of a drafter at this moment, and what has come of it since the engine started. */
export interface DrafterStatus {
  /** `none` stands for plain decoding. */
  readonly name: string;
  readonly kind: string;
  /** Where its weights lie; null for one that was not loaded from a folder. */
  readonly folder: string | null;
  /** Target layers that it sees. */
  readonly taps: readonly number[];
  /** The longest draft that it can make. */
  readonly blockDraftTokens: number;
  /** The longest draft that a request can get. */
  readonly maxDraftTokens: number;
  readonly lengthPolicy: 'auto' | 'fixed' | 'none';
  readonly synthetic: boolean;
  /** Whether requests that name no drafter get it when there is no split. */
  readonly isDefault: boolean;
  /** Share of the requests that name no drafter. */
  readonly weight: number;
  /** Why new requests do not get it; null when they do. */
  readonly off: string | null;
  /** Requests that got it. */
  readonly requests: number;
  readonly counts: AcceptanceCounts;
  /** Of drafts that it made beside other drafters; null when it has never been asked. */
  readonly shadow: ShadowStatus | null;
  /** Oldest first. */
  readonly swaps: readonly SwapRecord[];
}

/** A drafter that was put in another one's place while the engine ran. */
export interface SwapRecord {
  readonly id: number;
  readonly drafter: string;
  readonly path: string;
  readonly time: string;
  /** `superseded`: the next swap came before it was decided. */
  readonly state: 'watching' | 'kept' | 'rolled-back' | 'superseded';
  /** Accepted tokens per draft of the drafter that was kept last, and of this one; a draft that was owed counts, with none. */
  readonly before: MeanEstimate | null;
  readonly after: MeanEstimate | null;
  /** Why it was decided so; null when there is nothing to say. */
  readonly reason: string | null;
}

/** What would have come of drafts that were only scored. */
export interface ShadowStatus {
  /** Requests in which it failed, and the latest reason. */
  readonly failures: number;
  readonly lastFailure: string | null;
  /** As if it had served: each draft at its own length. */
  readonly counts: AcceptanceCounts;
  /** Against each drafter that served, on the same prefixes. */
  readonly paired: readonly PairedStatus[];
}

/** Both drafts of a round, cut to the shorter one's length. */
export interface PairedStatus {
  /** Name of the drafter that served. */
  readonly served: string;
  /** Accepted tokens per draft: the shadow's minus the served one's. */
  readonly difference: MeanEstimate;
  /** Pairs that reach a place, and in how many of them each was accepted there. */
  readonly positions: readonly { readonly pairs: number; readonly shadow: number; readonly served: number }[];
}

/** Loads at this moment. */
export interface EngineLoad {
  readonly running: number;
  readonly waiting: number;
  /** Share of the memory for caches that running requests have reserved, 0..1. */
  readonly cacheUsage: number;
}

/** From text to tokens and back, as the served model does it. */
export interface ModelText {
  /**
   * Ids of a short text; special tokens written in the text are recognised.
   * @param options.addSpecialTokens adds what the tokenizer puts around a text, such as a begin-of-sequence token; a
   *   rendered chat has its own already
   */
  encode(text: string, options: { readonly addSpecialTokens: boolean }): readonly TokenId[];
  /**
   * The ids of each of several texts, of any length, which others need not wait for.
   * @throws AppError `overloaded` when too much text waits; AbortedError
   */
  encodeAll(
    texts: readonly string[],
    options: { readonly addSpecialTokens: boolean },
    signal?: AbortSignal,
  ): Promise<readonly (readonly TokenId[])[]>;
  /** The text of a single token within others, special ones included; parts of characters are replacement characters. */
  tokenText(token: TokenId): string;
  /** Bytes of a single token within others, special ones included; they need not be whole characters. */
  tokenBytes(token: TokenId): Uint8Array;
  /** Whether `skipSpecialTokens` leaves the token out of texts. */
  isSpecial(token: TokenId): boolean;
  /** The vocabulary's own spelling of a token; null outside the vocabulary. */
  tokenSpelling(token: TokenId): string | null;
  /** The token that the vocabulary spells so; null when there is none. */
  tokenId(spelling: string): TokenId | null;
  /** The text of tokens; bytes that are no UTF-8 become replacement characters, ids outside the vocabulary are left out. */
  decode(tokens: readonly TokenId[], options: { readonly skipSpecialTokens: boolean }): string;
  /**
   * The prompt text that the model's chat template makes of the messages.
   * @param options default: with a generation prompt, without tools
   * @throws AppError `invalid_request` when the template does not accept them
   */
  renderChat(messages: readonly ChatMessage[], options?: ChatOptions): string;
}

export interface Engine extends AsyncDisposable {
  readonly info: EngineInfo;
  readonly text: ModelText;
  load(): EngineLoad;
  /** The default drafter first, plain decoding last. */
  drafterStatus(): readonly DrafterStatus[];
  /**
   * Puts another drafter in the place of a named one. Requests that run keep theirs; it goes when the last has ended.
   * @throws AppError `invalid_request` when it cannot be loaded or does not fit, or this engine does not swap;
   *   `rate_limited` while another one is being loaded
   */
  loadDrafter(name: string, path: string): Promise<SwapRecord>;
  /**
   * Whether a request with these rules can be served, to be asked before an answer begins.
   * @throws AppError `invalid_request` when they cannot be enforced; `overloaded` when too many wait for that; AbortedError
   */
  checkRules(rules: TokenRules, signal?: AbortSignal): Promise<void>;
  /**
   * Whether the choices of a request find room beside what runs and waits, to be asked before the first of them is run; and
   * with a token for a prompt that is not encoded yet, before that is.
   * @throws AppError `invalid_request` when they would not even if nothing else ran; `overloaded` as {@link generate} has it;
   *   `unavailable` when the engine drains
   */
  checkQueue(requests: readonly QueuedRequest[]): void;
  /**
   * Runs one request. Leaving the iterator early, or aborting the signal, frees the sequence within one step.
   * @throws AppError `context_length_exceeded` when the prompt leaves no room for a token; `invalid_request` when it is empty,
   *   names no drafter of this engine, or has rules that cannot be enforced or leave no token to go on with; `overloaded` when
   *   the queue is full (`details.limit` names which of its limits); `unavailable` when the engine drains
   */
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<DecodeEvent>;
  /** Refuses new requests, waits for the running ones until the signal aborts, then aborts what is left. */
  drain(signal: AbortSignal): Promise<void>;
}

/** Told of everything that is counted. Calls are synchronous, short and must not throw. */
export interface EngineObserver {
  /** A request got a sequence. */
  onStart(request: GenerateRequest, start: StartReport): void;
  onStep(step: StepReport): void;
  /** Every request that was accepted ends here once, whatever became of it. */
  onFinish(request: GenerateRequest, finish: FinishEvent): void;
  /** A drafter did not answer in time, and is left out for a while. */
  onQuarantine?(drafter: string, reason: string): void;
  /** Steps serve fewer sequences from now on, as what more of them need could not be loaded; the others wait. */
  onFewerSequences?(maxSequences: number, reason: string): void;
  /** A drafter was put in another one's place, or that was decided. */
  onSwap?(record: SwapRecord): void;
  /** A drafter that was to take another one's place could not. */
  onSwapFailure?(drafter: string, path: string, reason: string): void;
  /** An answer was decoded again without speculation. */
  onAudit?(report: AuditReport): void;
  /** A shadow drafter failed in a request, which was not touched by it. */
  onShadowFailure?(drafter: string, reason: string): void;
}

/** An answer beside the same one decoded without speculation. */
export interface AuditReport {
  readonly request: GenerateRequest;
  /** Name of the drafter that served it. */
  readonly drafter: string;
  /** `failed`: it could not be decoded again. */
  readonly outcome: 'equal' | 'different' | 'failed';
  /** Place in the answer of the first token that differs; its length when only the end does; null unless they differ. */
  readonly differsAt: number | null;
  readonly served: AuditedAnswer;
  /** Null when it failed. */
  readonly plain: AuditedAnswer | null;
  readonly error: string | null;
}

export interface AuditedAnswer {
  readonly tokens: readonly TokenId[];
  readonly ending: Pick<FinishEvent, 'reason' | 'stopReason'>;
}

/** A prompt against the beginnings that are kept. */
export interface StartReport {
  /** Tokens that were looked up; 0 where none are kept. */
  readonly queriedTokens: number;
  /** Tokens that need not be computed. */
  readonly cachedTokens: number;
}

/** One target step. */
export interface StepReport {
  readonly durationMs: number;
  readonly draftMs: number;
  /** Sequences that took part. */
  readonly sequences: number;
  /** Rows of the step, by use. */
  readonly promptRows: number;
  readonly decodeRows: number;
  /** Tokens emitted by the step, first tokens included. */
  readonly emitted: number;
  /** One entry for each sequence that verified. */
  readonly rounds: readonly ServedRound[];
  /** Shadow drafts that were decided by it. */
  readonly shadows: readonly ScoredShadow[];
}

/** A shadow draft, what would have come of it, and who served. */
export interface ScoredShadow extends RoundRecord {
  /** Name of the drafter that made it. */
  readonly shadow: string;
  readonly served: RoundRecord;
  /** Name of the drafter that served. */
  readonly drafter: string;
}

/** A round, and who drafted for it. */
export interface ServedRound extends RoundRecord {
  readonly shortBy: ShortDraftReason | null;
  /** Name of the drafter that serves the request, `none` when there is none. */
  readonly drafter: string;
}

/** The engine as the server sees it: it may still be loading, or have failed to load. */
export type EngineStatus =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly engine: Engine }
  | { readonly state: 'draining'; readonly engine: Engine }
  | { readonly state: 'failed'; readonly message: string };
