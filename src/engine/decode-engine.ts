/** Many requests on one target: requests join and leave between rounds, and share the rounds. */
import { abortWith } from '../core/abort-with.ts';
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import type { DecodeEvent, FinishEvent } from '../core/decode-event.ts';
import type { TokenRules } from '../core/token-rules.ts';
import { decodeRound, type RoundOutcome, type SequenceOutcome } from '../decode/round.ts';
import { RoundFailedError } from '../decode/round-failed-error.ts';
import type { Sequence } from '../decode/sequence.ts';
import { StepPacer } from '../decode/step-pacer.ts';
import type { Drafter } from '../drafter/drafter.ts';
import type { Target } from '../target/target.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import type { PromptEncoder } from '../text/prompt-encoder.ts';
import type { Tokenizer } from '../text/tokenizer.ts';
import { Admission, type ShadowOptions } from './admission.ts';
import { AnswerRules, type Grammars } from './answer-rules.ts';
import { DrafterExchange, type LoadDrafter, type TryDrafter } from './drafter-exchange.ts';
import { pickDrafter, type SplitWeights } from './drafter-split.ts';
import { DrafterStatistics } from './drafter-statistics.ts';
import { drafterStatus } from './drafter-status.ts';
import { DrafterSwaps, type SwapRules } from './drafter-swaps.ts';
import type {
  DrafterStatus,
  Engine,
  EngineInfo,
  EngineLoad,
  EngineObserver,
  GenerateRequest,
  QueuedRequest,
  ScoredShadow,
  ServedRound,
  SwapRecord,
} from './engine.ts';
import type { EngineLimits } from './engine-limits.ts';
import { GuardedDrafter, type GuardedServed } from './guarded-drafter.ts';
import { TokenizerText } from './model-text.ts';
import { PrefixCache, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import { snapshotPrompts } from './prompt-snapshots.ts';
import { RunningRequest } from './running-request.ts';
import { SelfAudit } from './self-audit.ts';
import { findDrafter, type ServedDrafter } from './served-drafter.ts';
import { startRequest } from './start-request.ts';

export interface DecodeEngineParts {
  /** Owned by the engine from here on. */
  readonly target: Target;
  /** The default first; empty for plain decoding only. Owned too. */
  readonly drafters: readonly ServedDrafter[];
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: ChatTemplate;
  /** Encodes long prompts. Owned. Default: the tokenizer does. */
  readonly prompts?: PromptEncoder | null;
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
  readonly loadDrafter?: LoadDrafter | null;
  /** Makes a draft that nobody uses, as {@link tryDrafter} does. Default: none is made before it serves. */
  readonly tryDrafter?: TryDrafter | null;
  /** Memory for the weights of all drafters, those above included. Default: any amount. */
  readonly drafterBytes?: number;
  readonly swapRules?: SwapRules;
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
  readonly text: TokenizerText;
  readonly #parts: DecodeEngineParts;
  readonly #swaps: DrafterSwaps;
  readonly #exchange: DrafterExchange;
  readonly #split: SplitWeights | null;
  readonly #statistics = new DrafterStatistics();
  readonly #audit: SelfAudit;
  readonly #rules: AnswerRules;
  readonly #admission: Admission;
  readonly #pacer: StepPacer;
  readonly #prefixes: PrefixCache;
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
    this.#prefixes = new PrefixCache(target, parts.limits.prefixCacheBytes);
    const { maxWaiting, limits, observers, shadow = null, cacheBytes = Number.POSITIVE_INFINITY } = parts;
    this.#admission = new Admission({
      target,
      drafters: () => this.#drafters,
      prefixes: this.#prefixes,
      maxWaiting,
      limits,
      cacheBytes,
      shadow,
    });
    this.#exchange = new DrafterExchange({
      swaps: this.#swaps,
      target,
      cacheBytes,
      observers,
      drafterBytes: parts.drafterBytes ?? Number.POSITIVE_INFINITY,
      load: parts.loadDrafter ?? null,
      attempt: parts.tryDrafter ?? null,
      timeoutMs: limits.drafterTimeoutMs,
      guard: (served) => guard(served, parts),
    });
    this.#pacer = new StepPacer(parts.limits.maxStepMs);
    this.text = new TokenizerText(parts.tokenizer, parts.chatTemplate, parts.prompts ?? null);
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

  get #running(): RunningRequest[] {
    return this.#admission.running;
  }

  load(): EngineLoad {
    return {
      running: this.#running.length,
      waiting: this.#admission.waiting.length,
      cacheUsage: this.#admission.budget.usage,
    };
  }

  drafterStatus(): readonly DrafterStatus[] {
    return drafterStatus(this.#swaps, this.#split, this.#statistics);
  }

  async loadDrafter(name: string, path: string): Promise<SwapRecord> {
    try {
      return await this.#exchange.exchange(name, path, this.#stop.signal);
    } finally {
      this.#wakeUp();
    }
  }

  /** Drafters that were replaced go when the last sequence that knows them has ended, and the last call. */
  async #disposeUnused(): Promise<void> {
    const started = this.#running.flatMap((request) => request.started ?? []);
    const inUse = started.flatMap(({ given, sequence }) => [given, ...sequence.shadows.map(({ drafter }) => drafter)]);
    // Nobody's answer waits for one that hangs.
    const hanging = this.#swaps.loaded.flatMap(({ drafter }) => (drafter.hangs ? [drafter] : []));
    for (const { drafter } of this.#swaps.takeUnused(new Set([...inUse, ...hanging] as readonly Drafter[]))) {
      this.#prefixes.forget(drafter);
      await drafter[Symbol.asyncDispose]();
    }
  }

  async checkRules(rules: TokenRules, signal?: AbortSignal): Promise<void> {
    await this.#rules.check(rules, signal);
  }

  checkQueue(requests: readonly QueuedRequest[]): void {
    this.#refuseWhileDraining();
    this.#admission.checkQueue(requests);
  }

  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<DecodeEvent> {
    this.#refuse(request);
    return this.#serve(request, signal);
  }

  async *#serve(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<DecodeEvent, void, void> {
    // A reader that leaves early is the same as one whose signal aborts.
    const left = new AbortController();
    using _ = abortWith(left, signal);
    const served = new RunningRequest(this.#assigned(request), left.signal);
    served.signal.addEventListener('abort', () => this.#wakeUp(), { once: true });
    using rules = request.rules === undefined ? null : await this.#rules.compile(request);
    if (rules !== null) served.makeProcessor = rules.makeProcessor;
    this.#refuse(request);
    this.#admission.waiting.push(served);
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
    this.#refuseWhileDraining();
    this.#admission.check(request);
    // A name that no drafter has is told at once, not when it is the request's turn.
    findDrafter(this.#drafters, request.drafter);
  }

  #refuseWhileDraining(): void {
    if (this.#draining) throw new AppError('unavailable', 'The server is shutting down; send the request to another one');
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
    for (const request of this.#admission.all) {
      this.#admission.remove(request);
      this.#abort(request);
    }
  }

  /** Until something comes; answers are looked at meanwhile. */
  async #idle(): Promise<void> {
    const woken = new AbortController();
    const wake = new Promise<void>((resolve) => {
      this.#wake = () => {
        // Readers of answers that have ended leave too.
        if (this.#admission.waiting.length > 0 || this.#stop.signal.aborted) woken.abort();
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
    const { target } = this.#parts;
    await target.prepare?.(this.#running.length);
    // Prompts share the rows of a step in this order. Whom it has no room for any more waits for the end of another.
    const requests = this.#running.toSorted((a, b) => a.rank - b.rank).slice(0, target.maxSequences);
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
        target,
        sequences,
        abandoned.signal,
        this.#pacer.promptRows(),
        this.#takesSnapshots ? SNAPSHOT_POSITIONS : undefined,
      );
    } catch (error) {
      if (error instanceof AbortedError) return;
      this.#failRound(requests, error);
      return;
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', check);
    }
    this.#deliver(requests, outcome);
    if (this.#takesSnapshots) await snapshotPrompts(this.#running, this.#prefixes, this.#stop.signal);
  }

  /** A step failed for those who had rows in it: prompts that had none in this one, and whoever waits, are served next. */
  #failRound(requests: readonly RunningRequest[], error: unknown): void {
    const [failed, cause] = error instanceof RoundFailedError ? [error.sequences, error.cause] : [null, error];
    for (const request of requests) {
      const { started } = request;
      if (failed === null || (started !== null && failed.includes(started.sequence))) this.#fail(request, cause);
    }
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
      request.deliver(outcome);
      if (outcome.failure !== null) this.#fail(request, outcome.failure.error);
      if (outcome.failure !== null || ending === null) continue;
      this.#admission.remove(request);
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
      const { drafterError } = started.sequence;
      if (started.given !== null) this.#swaps.onRound(request.id, started.given, { ...round, shortBy, drafterError });
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
    for (let request = this.#admission.take(); request !== null; request = this.#admission.take()) {
      try {
        this.#start(request);
        this.#running.push(request);
      } catch (error) {
        this.#fail(request, error);
      }
    }
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
    for (const request of this.#admission.all) {
      if (!request.signal.aborted) continue;
      this.#admission.remove(request);
      this.#abort(request);
    }
  }

  #abort(request: RunningRequest): void {
    this.#retain(request);
    this.#ended(request, request.finish({ reason: 'aborted', stopReason: null }));
  }

  #fail(request: RunningRequest, error: unknown): void {
    this.#admission.remove(request);
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

  #wakeUp(): void {
    this.#wake?.();
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#draining = true;
    const POLL_MS = 20;
    while (this.#admission.waiting.length + this.#running.length > 0 && !signal.aborted) {
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
    const drafters = this.#swaps.loaded.map(({ drafter }) => drafter);
    for (const drafter of drafters) await drafter[Symbol.asyncDispose]();
    await this.#parts.grammars?.[Symbol.asyncDispose]();
    await this.#parts.prompts?.[Symbol.asyncDispose]();
    // A drafter that hangs or is still being loaded is left to the end of the process, and with it the target, whose weights it may use.
    if (!this.#exchange.loading && !drafters.some(({ hangs }) => hangs)) await this.#parts.target[Symbol.asyncDispose]();
  }
}
