/** Many requests on one target: requests join and leave between rounds, and share the rounds. */
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import type { DecodeEvent, FinishEvent } from '../core/decode-event.ts';
import type { TokenRules } from '../core/token-rules.ts';
import { decodeRound, type RoundOutcome, type SequenceOutcome } from '../decode/round.ts';
import type { Sequence } from '../decode/sequence.ts';
import { StepPacer } from '../decode/step-pacer.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { Target } from '../target/target.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import { AnswerRules, type Grammars, NO_PROCESSOR } from './answer-rules.ts';
import { CacheBudget, cacheBytes } from './cache-budget.ts';
import { pickDrafter, requestFraction, type SplitWeights } from './drafter-split.ts';
import { DrafterStatistics } from './drafter-statistics.ts';
import { drafterStatus } from './drafter-status.ts';
import { DrafterSwaps, type SwapRules } from './drafter-swaps.ts';
import type {
  ChatMessage,
  ChatOptions,
  DrafterStatus,
  Engine,
  EngineInfo,
  EngineLoad,
  EngineObserver,
  GenerateRequest,
  ScoredShadow,
  ServedRound,
  SwapRecord,
} from './engine.ts';
import type { EngineLimits } from './engine-limits.ts';
import { GuardedDrafter, type GuardedServed } from './guarded-drafter.ts';
import { PrefixCache, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import { snapshotPrompts } from './prompt-snapshots.ts';
import { RunningRequest } from './running-request.ts';
import { SelfAudit } from './self-audit.ts';
import { findDrafter, type ServedDrafter } from './served-drafter.ts';
import { sharesBeginning } from './shared-beginning.ts';
import { startRequest } from './start-request.ts';
import { WaitingQueue } from './waiting-queue.ts';

export interface DecodeEngineParts {
  /** Owned by the engine from here on. */
  readonly target: Target;
  /** The default first; empty for plain decoding only. Owned too. */
  readonly drafters: readonly ServedDrafter[];
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
  /** Owned. Default: structures are refused. */
  readonly grammars?: (Grammars & AsyncDisposable) | null;
  readonly model: string;
  readonly samplingDefaults: EngineInfo['samplingDefaults'];
  /** Requests that may wait for a sequence. */
  readonly maxWaiting: number;
  readonly limits: EngineLimits;
  /** Memory for the caches of running requests: at least what a sequence of full length takes. Default: any amount. */
  readonly cacheBytes?: number;
  readonly observers: readonly EngineObserver[];
  /** Shares of the requests that name no drafter. Default: all get the first one. */
  readonly split?: SplitWeights | null;
  /** Drafters that are scored on a share of the requests. Default: none. */
  readonly shadow?: ShadowOptions | null;
  /** Share of the answers that are decoded again without speculation in idle time. Default 0. */
  readonly auditRate?: number;
  /** Loads a drafter that can take the place of another one. Default: none can. */
  readonly loadDrafter?: ((replaced: ServedDrafter, path: string) => Promise<ServedDrafter>) | null;
  readonly swapRules?: SwapRules;
}

export interface ShadowOptions {
  readonly drafters: readonly string[];
  /** Share of the requests, 0 to 1. */
  readonly rate: number;
}

/** How long a drafter that hung is left out. */
const QUARANTINE_MS = 60_000;

function guard(served: ServedDrafter, { limits, observers }: DecodeEngineParts): GuardedServed {
  const { name } = served;
  const onQuarantine = (reason: string) => {
    for (const observer of observers) observer.onQuarantine?.(name, reason);
  };
  const options = { name, timeoutMs: limits.drafterTimeoutMs, quarantineMs: QUARANTINE_MS, onQuarantine };
  return { ...served, drafter: new GuardedDrafter(served.drafter, options) };
}

export class DecodeEngine implements Engine {
  readonly info: EngineInfo;
  readonly #parts: DecodeEngineParts;
  readonly #swaps: DrafterSwaps;
  #swapping = false;
  readonly #split: SplitWeights | null;
  readonly #statistics = new DrafterStatistics();
  readonly #audit: SelfAudit;
  readonly #rules: AnswerRules;
  readonly #waiting = new WaitingQueue();
  readonly #running: RunningRequest[] = [];
  readonly #pacer: StepPacer;
  readonly #prefixes: PrefixCache;
  readonly #budget: CacheBudget;
  readonly #loop: Promise<void>;
  /** Ends the loop; requests still there are aborted. */
  readonly #stop = new AbortController();
  #draining = false;
  #wake: (() => void) | null = null;

  constructor(parts: DecodeEngineParts) {
    const { target } = parts;
    this.#parts = parts;
    const onSwap = (record: SwapRecord) => {
      for (const observer of parts.observers) observer.onSwap?.(record);
    };
    const guarded = parts.drafters.map((served) => guard(served, parts));
    this.#swaps = new DrafterSwaps(guarded, onSwap, parts.swapRules);
    this.#split = parts.split ?? null;
    this.#audit = new SelfAudit(parts.auditRate ?? 0);
    this.#rules = new AnswerRules(target.facts, parts.grammars ?? null);
    this.#budget = new CacheBudget(parts.cacheBytes ?? Number.POSITIVE_INFINITY);
    this.#prefixes = new PrefixCache(target, parts.limits.prefixCacheBytes);
    this.#pacer = new StepPacer(parts.limits.maxStepMs);
    this.info = {
      model: parts.model,
      created: Math.floor(Date.now() / 1000),
      maxContext: target.facts.maxContext,
      maxSequences: target.maxSequences,
      vocabSize: target.facts.vocabSize,
      drafters: parts.drafters.map(({ name, drafter, draftTokens }) => ({
        name,
        kind: drafter.kind,
        maxDraftTokens: draftTokens,
        synthetic: drafter.synthetic !== undefined,
      })),
      chatVariables: [...parts.chatTemplate.variables],
      samplingDefaults: parts.samplingDefaults,
    };
    this.#loop = this.#run();
  }

  get #drafters(): readonly GuardedServed[] {
    return this.#swaps.current;
  }

  load(): EngineLoad {
    return {
      running: this.#running.length,
      waiting: this.#waiting.length,
      cacheUsage: this.#budget.usage,
    };
  }

  drafterStatus(): readonly DrafterStatus[] {
    return drafterStatus(this.#swaps, this.#split, this.#statistics);
  }

  encode(text: string, options: { readonly addSpecialTokens: boolean }): readonly number[] {
    return this.#parts.tokenizer.encode(text, options);
  }

  async loadDrafter(name: string, path: string): Promise<SwapRecord> {
    const replaced = findDrafter(this.#drafters, name);
    const { loadDrafter, target, observers } = this.#parts;
    if (!loadDrafter || replaced === null) {
      throw new AppError('invalid_request', `Expected a drafter that can be replaced, got ${name}; see --allow-drafter-swap`);
    }
    if (this.#swapping) throw new AppError('rate_limited', 'A drafter is being loaded already; try again when it is there');
    this.#swapping = true;
    try {
      const next = await loadDrafter(replaced, path);
      const needed = cacheBytes(target, next.drafter, this.info.maxContext);
      if (this.#stop.signal.aborted || needed > this.#budget.totalBytes) {
        await next.drafter[Symbol.asyncDispose]();
        throw this.#stop.signal.aborted
          ? new AppError('unavailable', 'The server is shutting down')
          : new AppError(
              'invalid_request',
              `Expected a drafter whose caches fit ${this.#budget.totalBytes} bytes, got ${needed}`,
            );
      }
      const record = this.#swaps.replace(guard(next, this.#parts), path);
      for (const observer of observers) observer.onSwap?.(record);
      return record;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      for (const observer of observers) observer.onSwapFailure?.(name, path, reason);
      throw error;
    } finally {
      this.#swapping = false;
      this.#wakeUp();
    }
  }

  /** Drafters that were replaced go when the last sequence that knows them has ended. */
  async #disposeUnused(): Promise<void> {
    const sequences = this.#running.flatMap(({ started }) => started?.sequence ?? []);
    const inUse = new Set(sequences.flatMap(({ drafting, shadows }) => [drafting, ...shadows].map((part) => part?.drafter)));
    for (const { drafter } of this.#swaps.takeUnused(inUse as ReadonlySet<Drafter>)) {
      this.#prefixes.forget(drafter);
      await drafter[Symbol.asyncDispose]();
    }
  }

  tokenText(token: number): string {
    return this.#parts.tokenizer.decode([token], { skipSpecialTokens: false });
  }

  tokenBytes(token: number): Uint8Array {
    const { tokenizer } = this.#parts;
    return tokenizer.isByteLevel ? tokenizer.tokenBytes(token) : new TextEncoder().encode(this.tokenText(token));
  }

  tokenSpelling(token: number): string | null {
    return this.#parts.tokenizer.token(token);
  }

  tokenId(spelling: string): number | null {
    return this.#parts.tokenizer.tokenId(spelling);
  }

  decode(tokens: readonly number[], options: { readonly skipSpecialTokens: boolean }): string {
    return this.#parts.tokenizer.decode(tokens, options);
  }

  renderChat(messages: readonly ChatMessage[], options?: ChatOptions): string {
    const { addGenerationPrompt = true, continueFinalMessage = false, tools = null, variables = {} } = options ?? {};
    const shown = tools === null ? {} : { tools };
    return this.#parts.chatTemplate.render(messages, { addGenerationPrompt, continueFinalMessage, variables, ...shown });
  }

  async checkRules(rules: TokenRules): Promise<void> {
    await this.#rules.check(rules);
  }

  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<DecodeEvent> {
    this.#refuse(request);
    return this.#serve(request, signal);
  }

  async *#serve(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<DecodeEvent, void, void> {
    // A reader that leaves early is the same as one whose signal aborts.
    const left = new AbortController();
    const served = new RunningRequest(this.#assigned(request), AbortSignal.any([signal, left.signal]));
    served.signal.addEventListener('abort', () => this.#wakeUp(), { once: true });
    served.makeProcessor = request.rules === undefined ? NO_PROCESSOR : await this.#rules.compile(request);
    this.#refuse(request);
    this.#waiting.push(served);
    this.#wakeUp();
    try {
      yield* served.events;
    } finally {
      left.abort();
    }
  }

  /** The request, with a drafter of the split if it names none. */
  #assigned(request: GenerateRequest): GenerateRequest {
    return request.drafter !== null || this.#split === null
      ? request
      : { ...request, drafter: pickDrafter(this.#split, request) };
  }

  /** @throws AppError as `Engine.generate` says */
  #refuse(request: GenerateRequest): void {
    const { promptTokens } = request;
    const { maxContext, vocabSize } = this.info;
    findDrafter(this.#drafters, request.drafter);
    if (this.#draining) throw new AppError('unavailable', 'The server is shutting down; send the request to another one');
    if (promptTokens.length === 0) {
      throw new AppError('invalid_request', 'Expected a prompt of at least one token, got an empty one', {
        details: { param: 'prompt' },
      });
    }
    const unknown = promptTokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabSize);
    if (unknown !== undefined) {
      throw new AppError('invalid_request', `Expected token ids of 0 to ${vocabSize - 1}, got ${unknown}`, {
        details: { param: 'prompt' },
      });
    }
    if (promptTokens.length >= maxContext) {
      throw new AppError(
        'context_length_exceeded',
        `Expected a prompt shorter than the context of ${maxContext} tokens, got ${promptTokens.length}; shorten it`,
        { details: { promptTokens: promptTokens.length, maxContext } },
      );
    }
    // Requests that came a moment ago may not have been given their free sequences yet.
    const { maxWaiting, limits } = this.#parts;
    const free = this.info.maxSequences - this.#running.length;
    if (this.#waiting.length >= free + maxWaiting) {
      throw new AppError('overloaded', `${this.#waiting.length} requests are waiting already; try again later`, {
        details: { limit: 'max_num_queued_reqs' },
      });
    }
    if (this.#waiting.length >= free && this.#waiting.tokens + promptTokens.length > limits.maxWaitingTokens) {
      throw new AppError('overloaded', `${this.#waiting.tokens} prompt tokens are waiting already; try again later`, {
        details: { limit: 'max_num_queued_tokens' },
      });
    }
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#dropAborted();
      if (this.#swaps.hasRetired) await this.#disposeUnused();
      this.#admit();
      if (this.#running.length === 0) {
        await this.#idle();
        continue;
      }
      await this.#round();
    }
    for (const request of [...this.#waiting, ...this.#running]) {
      this.#remove(request);
      this.#abort(request);
    }
  }

  /** Until something comes; answers are looked at meanwhile. */
  async #idle(): Promise<void> {
    const woken = new AbortController();
    const wake = new Promise<void>((resolve) => {
      this.#wake = () => {
        // Readers of answers that have ended leave too.
        if (this.#waiting.length > 0 || this.#stop.signal.aborted) woken.abort();
        resolve();
      };
    });
    if (this.#audit.due) {
      const report = await this.#audit.next(this.#parts.target, this.#parts.tokenizer, woken.signal);
      if (report !== null) for (const observer of this.#parts.observers) observer.onAudit?.(report);
    } else {
      await wake;
    }
    this.#wake = null;
  }

  async #round(): Promise<void> {
    const requests = [...this.#running];
    const sequences = requests.flatMap(({ started }) => (started === null ? [] : [started.sequence]));
    // A run that nobody waits for any more is not worth finishing.
    const abandoned = new AbortController();
    const check = () => {
      if (this.#stop.signal.aborted || requests.every(({ signal }) => signal.aborted)) abandoned.abort();
    };
    // Not AbortSignal.any: what it makes stays known to a signal as old as the engine, and rounds are many.
    const signals = [this.#stop.signal, ...requests.map(({ signal }) => signal)];
    for (const signal of signals) signal.addEventListener('abort', check, { once: true });
    let outcome: RoundOutcome;
    try {
      outcome = await decodeRound(
        this.#parts.target,
        sequences,
        abandoned.signal,
        this.#pacer.promptRows(),
        this.#takesSnapshots ? SNAPSHOT_POSITIONS : undefined,
      );
    } catch (error) {
      if (error instanceof AbortedError) return;
      // The step failed for all who took part in it; whoever waits is served next.
      for (const request of requests) this.#fail(request, error);
      return;
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', check);
    }
    this.#deliver(requests, outcome);
    if (this.#takesSnapshots) await snapshotPrompts(this.#running, this.#prefixes, this.#stop.signal);
  }

  get #takesSnapshots(): boolean {
    return this.#prefixes.enabled && this.#parts.target.recurrent !== undefined;
  }

  #deliver(requests: readonly RunningRequest[], { sequences, draftMs, verifyMs, commitMs }: RoundOutcome): void {
    const outcomes = new Map(sequences.map((outcome) => [outcome.sequence, outcome]));
    const promptRows = sequences.reduce((sum, outcome) => sum + outcome.promptRows, 0);
    const rounds = this.#rounds(requests, outcomes);
    const shadows = this.#shadows(requests, outcomes);
    const decodes = sequences.some(({ round }) => round !== null);
    this.#pacer.observe(promptRows, decodes, draftMs + verifyMs + commitMs);
    // Counted before it is passed on: whoever reads an answer finds it in the counters.
    for (const observer of this.#parts.observers) {
      observer.onStep({
        durationMs: verifyMs,
        draftMs,
        sequences: sequences.length,
        promptRows,
        decodeRows: sequences.reduce((sum, { round }) => sum + (round === null ? 0 : 1 + round.drafted), 0),
        emitted: sequences.reduce((sum, { emitted }) => sum + emitted.length, 0),
        rounds,
        shadows,
      });
    }
    for (const request of requests) {
      const { started } = request;
      const outcome = started && outcomes.get(started.sequence);
      if (!started || !outcome) continue;
      const { ending } = started.sequence;
      if (outcome.emitted.length > 0) {
        const text = ending === null ? started.text.take() : started.text.finish();
        const { promptLogprobs, emitted } = started.sequence;
        const isFirst = emitted === outcome.emitted.length && promptLogprobs !== null;
        request.emit({
          type: 'tokens',
          tokens: outcome.emitted,
          text,
          ...(outcome.logprobs === null ? {} : { logprobs: outcome.logprobs }),
          ...(isFirst ? { promptLogprobs } : {}),
        });
      }
      if (outcome.failure !== null) this.#fail(request, outcome.failure.error);
      if (outcome.failure !== null || ending === null) continue;
      this.#remove(request);
      this.#retain(request);
      const { request: asked } = request;
      const { tokens, promptLength } = started.sequence;
      const { drafter } = started;
      if (!this.#isSynthetic(drafter)) {
        const { makeProcessor } = request;
        this.#audit.offer({ request: asked, makeProcessor, drafter, tokens: tokens.slice(promptLength), ending });
      }
      this.#ended(request, request.finish(ending));
    }
  }

  #isSynthetic(drafter: string): boolean {
    return this.info.drafters.some(({ name, synthetic }) => name === drafter && synthetic);
  }

  /** What was verified, counted by drafter. */
  #rounds(requests: readonly RunningRequest[], outcomes: ReadonlyMap<Sequence, SequenceOutcome>): ServedRound[] {
    return requests.flatMap(({ request, started }) => {
      const outcome = started === null ? undefined : outcomes.get(started.sequence);
      if (!started || !outcome || outcome.round === null) return [];
      const { round, shortBy } = outcome;
      this.#statistics.onRound(request.id, started.drafter, round, shortBy);
      const { drafting } = started.sequence;
      if (drafting !== null) this.#swaps.onRound(request.id, drafting.drafter, round);
      return [{ ...round, shortBy, drafter: started.drafter }];
    });
  }

  /** Shadow drafts that are decided, counted by drafter. */
  #shadows(requests: readonly RunningRequest[], outcomes: ReadonlyMap<Sequence, SequenceOutcome>): ScoredShadow[] {
    return requests.flatMap(({ request, started }) => {
      const decided = (started && outcomes.get(started.sequence)?.shadows) ?? [];
      return decided.map((round) => {
        const scored = { ...round, drafter: started!.drafter };
        this.#statistics.onShadow(request.id, scored);
        return scored;
      });
    });
  }

  #admit(): void {
    while (this.#running.length < this.info.maxSequences) {
      const request = this.#next();
      // Who needs more memory than is left holds up those behind, or it would wait for ever.
      if (request === undefined || !this.#reserve(request)) return;
      this.#waiting.remove(request);
      try {
        this.#start(request);
        this.#running.push(request);
      } catch (error) {
        this.#fail(request, error);
      }
    }
  }

  /** The first that waits, but for those that had better wait for a prompt under way. */
  #next(): RunningRequest | undefined {
    const underWay = this.#prefixes.enabled ? this.#running.flatMap((running) => running.promptUnderWay() ?? []) : [];
    if (underWay.length === 0) return this.#waiting.first;
    const block = this.#takesSnapshots ? SNAPSHOT_POSITIONS : 1;
    for (const waiting of this.#waiting) {
      const { promptTokens: tokens, cacheSalt: salt = null, promptLogprobs = null, draftTokens } = waiting.request;
      const drafter = draftTokens === 0 ? null : findDrafter(this.#drafters, waiting.request.drafter);
      const wanted = { tokens, salt, drafter: drafter?.drafter ?? null };
      // Rows that are told of have to be computed.
      if (promptLogprobs !== null || !sharesBeginning(wanted, underWay, block)) return waiting;
    }
    return undefined;
  }

  #reserve(running: RunningRequest): boolean {
    const { promptTokens, maxTokens, drafter } = running.request;
    const positions = Math.min(promptTokens.length + (maxTokens ?? this.info.maxContext), this.info.maxContext);
    const served = findDrafter(this.#drafters, drafter);
    const bytes = cacheBytes(this.#parts.target, served?.drafter ?? null, positions);
    if (!this.#budget.reserve(bytes)) return false;
    running.reservedBytes = bytes;
    const shadows = this.#shadowsOf(running.request, served);
    const shadowBytes = shadows.reduce((sum, { drafter: { bytesPerPosition } }) => sum + bytesPerPosition * positions, 0);
    // No request waits for the memory of those who only watch.
    if (shadows.length > 0 && this.#budget.reserve(shadowBytes)) {
      running.reservedBytes += shadowBytes;
      running.shadows = shadows;
    }
    return true;
  }

  #shadowsOf(request: GenerateRequest, served: ServedDrafter | null): readonly GuardedServed[] {
    const { shadow } = this.#parts;
    if (!shadow || request.draftTokens === 0 || requestFraction(request, 'shadow') >= shadow.rate) return [];
    return this.#drafters.filter((other) => other !== served && shadow.drafters.includes(other.name));
  }

  #release(running: RunningRequest): void {
    this.#budget.release(running.reservedBytes);
    running.reservedBytes = 0;
  }

  #start(running: RunningRequest): void {
    const { request } = running;
    const started = startRequest(request, {
      ...this.#parts,
      drafters: this.#drafters,
      shadows: running.shadows,
      makeProcessor: running.makeProcessor,
      prefixes: this.#prefixes,
      running: this.#running.flatMap((other) => other.prefix() ?? []),
    });
    running.start(started);
    this.#statistics.onStart(started.drafter);
    const lookedUp = this.#prefixes.enabled && running.shadows.length === 0 && (request.promptLogprobs ?? null) === null;
    for (const observer of this.#parts.observers) {
      observer.onStart(request, {
        queriedTokens: lookedUp ? request.promptTokens.length : 0,
        cachedTokens: started.cachedTokens,
      });
    }
  }

  /** What was computed of a sequence that has ended may be the beginning of another. */
  #retain(request: RunningRequest): void {
    const source = request.prefix();
    if (source === null) return;
    let kept: boolean;
    try {
      kept = this.#prefixes.retain(source);
    } catch {
      // A drafter that cannot say what it knows: the sequence is gone, and nobody misses its beginning.
      kept = false;
    }
    if (kept) request.started?.sequence.giveUpCache();
  }

  #dropAborted(): void {
    for (const request of [...this.#waiting, ...this.#running]) {
      if (!request.signal.aborted) continue;
      this.#remove(request);
      this.#abort(request);
    }
  }

  #abort(request: RunningRequest): void {
    this.#retain(request);
    this.#ended(request, request.finish({ reason: 'aborted', stopReason: null }));
  }

  #fail(request: RunningRequest, error: unknown): void {
    this.#remove(request);
    this.#ended(request, request.fail(error));
  }

  #ended({ request, started }: RunningRequest, finish: FinishEvent): void {
    if (started !== null) this.#statistics.onEnd(request.id, started.drafter);
    this.#swaps.onEnd(request.id);
    for (const [name, reason] of started?.sequence.shadowErrors ?? []) {
      this.#statistics.onShadowFailure(name, reason);
      for (const observer of this.#parts.observers) observer.onShadowFailure?.(name, reason);
    }
    for (const observer of this.#parts.observers) observer.onFinish(request, finish);
  }

  #remove(request: RunningRequest): void {
    if (this.#waiting.remove(request)) return;
    this.#release(request);
    const index = this.#running.indexOf(request);
    if (index >= 0) this.#running.splice(index, 1);
  }

  #wakeUp(): void {
    this.#wake?.();
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#draining = true;
    const POLL_MS = 20;
    while (this.#waiting.length + this.#running.length > 0 && !signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    await this.#end();
  }

  /** Aborts what is still there. */
  async #end(): Promise<void> {
    this.#draining = true;
    this.#stop.abort();
    this.#wakeUp();
    await this.#loop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    this.#prefixes[Symbol.dispose]();
    for (const { drafter } of this.#swaps.loaded) await drafter[Symbol.asyncDispose]();
    await this.#parts.grammars?.[Symbol.asyncDispose]();
    await this.#parts.target[Symbol.asyncDispose]();
  }
}
