/** A scripted engine: real events, rounds, stops and counts, without a model. */
import { AppError } from '../../src/core/app-error.ts';
import type { DecodeEvent, FinishEvent, FinishReason } from '../../src/core/decode-event.ts';
import type { PhasedRound } from '../../src/core/round-trace.ts';
import type { RoundRecord, ShortDraftReason } from '../../src/core/speculation-record.ts';
import type { TokenId } from '../../src/core/token.ts';
import type { TokenRules } from '../../src/core/token-rules.ts';
import type {
  ChatMessage,
  ChatOptions,
  DrafterStatus,
  Engine,
  EngineInfo,
  EngineLoad,
  EngineObserver,
  GenerateRequest,
  ModelText,
  QueuedRequest,
  StepReport,
  SwapRecord,
} from '../../src/engine/engine.ts';
import { FakeClock } from './fake-clock.ts';
import { fakeLogprobs } from './fake-logprobs.ts';
import {
  addedToken,
  decodeBytes,
  EOS_TOKEN,
  encodeBytes,
  FakeTextStream,
  isSpecial,
  tokenBytes,
  VOCAB_SIZE,
} from './fake-text.ts';

/** What the fake does for one request. */
export interface FakeScript {
  /** The answer; an end-of-sequence token follows it. With ignore_eos it repeats. */
  readonly text: string;
  /** Draft tokens that the target would accept, round by round; the list repeats. Default: all. */
  readonly accepts?: readonly number[];
  /** Draft tokens that the drafter offers, round by round; the list repeats. Default: as many as may be. */
  readonly proposes?: readonly number[];
  /** Tokens of the prompt that an earlier request began with. */
  readonly cachedTokens?: number;
  /** What is told of its rounds when the request asks for it. */
  readonly trace?: readonly PhasedRound[];
  /** The round in which the drafter fails for good. */
  readonly drafterFailsAt?: number;
  /** The engine fails instead of running this step; step 0 is the prompt's. */
  readonly failsAt?: { readonly step: number; readonly error: unknown };
}

export interface FakeEngineOptions {
  readonly info?: Partial<EngineInfo>;
  readonly script?: (request: GenerateRequest) => FakeScript;
  readonly observer?: EngineObserver;
  readonly clock?: FakeClock;
  /** Default: none. */
  readonly loadDrafter?: (name: string, path: string) => SwapRecord;
  /** Default: none. */
  readonly drafterStatus?: () => readonly DrafterStatus[];
  /** Whether tags have tokens of their own, as far as can be asked. Default true. */
  readonly addedTokens?: boolean;
  /** Whether tags are special tokens. Default false. */
  readonly specialTags?: boolean;
  /** What opens an answer behind the messages. Default: an assistant's turn. */
  readonly generationPrompt?: string;
  /** Throws for rules that cannot be enforced. Default: all can. */
  readonly checkRules?: (rules: TokenRules, signal?: AbortSignal) => void | Promise<void>;
  /** Throws for choices that have no room together. Default: all have. */
  readonly checkQueue?: (requests: readonly QueuedRequest[]) => void;
  /** Requests that may wait; one more is refused. Default 64. */
  readonly maxWaiting?: number;
  /** Awaited before each step: where a test holds the engine. */
  readonly beforeStep?: (request: GenerateRequest, step: number) => Promise<void> | void;
}

const STEP_MS = 10;
const DRAFT_MS = 2;

export class FakeEngine implements Engine {
  readonly info: EngineInfo;
  readonly text: ModelText;
  readonly clock: FakeClock;
  /** Every text that was encoded, in order. */
  readonly encoded: { readonly text: string; readonly addSpecialTokens: boolean }[] = [];
  /** Every chat that was rendered, in order. */
  readonly chats: { readonly messages: readonly ChatMessage[]; readonly options: ChatOptions | undefined }[] = [];
  /** Every request that came, in order. */
  readonly requests: GenerateRequest[] = [];
  /** Every end, in order. */
  readonly finishes: FinishEvent[] = [];
  /** Steps run so far. */
  steps = 0;
  readonly #options: FakeEngineOptions;
  readonly #drained = new AbortController();
  readonly #queue: (() => void)[] = [];
  #running = 0;
  #cachePositions = 0;
  #isDraining = false;

  constructor(options: FakeEngineOptions = {}) {
    this.#options = options;
    this.clock = options.clock ?? new FakeClock();
    this.info = {
      model: 'fake-model',
      created: 1_893_456_000,
      maxContext: 512,
      maxSequences: 8,
      vocabSize: VOCAB_SIZE,
      drafters: [{ name: 'oracle', kind: 'oracle', maxDraftTokens: 4, synthetic: false }],
      chatVariables: ['messages', 'add_generation_prompt', 'tools', 'enable_thinking'],
      samplingDefaults: {},
      ...options.info,
    };
    this.text = this.#text();
  }

  load(): EngineLoad {
    const capacity = this.info.maxContext * this.info.maxSequences;
    return { running: this.#running, waiting: this.#queue.length, cacheUsage: this.#cachePositions / capacity };
  }

  drafterStatus(): readonly DrafterStatus[] {
    return this.#options.drafterStatus?.() ?? [];
  }

  async checkRules(rules: TokenRules, signal?: AbortSignal): Promise<void> {
    await this.#options.checkRules?.(rules, signal);
  }

  checkQueue(requests: readonly QueuedRequest[]): void {
    this.#options.checkQueue?.(requests);
  }

  async loadDrafter(name: string, path: string): Promise<SwapRecord> {
    if (this.#options.loadDrafter === undefined)
      throw new AppError('invalid_request', 'Expected an engine that swaps, got none.');
    return this.#options.loadDrafter(name, path);
  }

  #text(): ModelText {
    const encode = (text: string, { addSpecialTokens }: { readonly addSpecialTokens: boolean }): readonly TokenId[] => {
      this.encoded.push({ text, addSpecialTokens });
      return encodeBytes(text);
    };
    const special = (token: TokenId) => isSpecial(token, this.#options.specialTags);
    const tokenText = (token: TokenId) => `<${token}>`;
    return {
      encode,
      encodeAll: async (texts, options) => texts.map((text) => encode(text, options)),
      tokenText,
      tokenBytes,
      isSpecial: special,
      tokenSpelling: (token) => (token < VOCAB_SIZE ? tokenText(token) : null),
      tokenId: (spelling) => (this.#options.addedTokens === false ? null : addedToken(spelling)),
      decode: (tokens, { skipSpecialTokens }) => decodeBytes(tokens, (token) => !skipSpecialTokens || !special(token)),
      renderChat: (messages, options) => {
        this.chats.push({ messages, options });
        const turns = messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join('');
        if (options?.continueFinalMessage === true) return turns.slice(0, -'<|im_end|>\n'.length);
        if (options?.addGenerationPrompt === false) return turns;
        const opening = this.#options.generationPrompt ?? '<|im_start|>assistant\n';
        return `${turns}${opening}${options?.variables['enable_thinking'] === false ? '<think>\n\n</think>\n\n' : ''}`;
      },
    };
  }

  async *generate(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<DecodeEvent, void, undefined> {
    const { promptTokens } = request;
    this.requests.push(request);
    if (this.#isDraining) throw new AppError('unavailable', 'Expected a running engine, got one that drains. Try another one.');
    if (promptTokens.length === 0) throw new AppError('invalid_request', 'Expected a prompt, got an empty one. Send one.');
    if (promptTokens.length >= this.info.maxContext) {
      throw new AppError(
        'context_length_exceeded',
        `Expected a prompt of fewer than ${this.info.maxContext} tokens, got ${promptTokens.length}. Shorten it.`,
        { details: { promptTokens: promptTokens.length, maxContext: this.info.maxContext } },
      );
    }
    const acceptedAt = this.clock.monotonicMs();
    await this.#enter();
    const run = new FakeRun(this, request, AbortSignal.any([signal, this.#drained.signal]), this.#options, acceptedAt);
    this.#cachePositions += promptTokens.length;
    try {
      yield* run.events();
    } finally {
      const finish = run.finish ?? run.end(run.hasFailed ? 'error' : 'aborted', null);
      this.finishes.push(finish);
      this.#options.observer?.onFinish(request, finish);
      this.#cachePositions -= promptTokens.length;
      this.#running -= 1;
      this.#queue.shift()?.();
    }
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true;
    while (this.#running > 0 && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1));
    this.#drained.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(AbortSignal.abort());
  }

  /** First come, first served. */
  async #enter(): Promise<void> {
    if (this.#running >= this.info.maxSequences) {
      if (this.#queue.length >= (this.#options.maxWaiting ?? 64)) {
        throw new AppError('overloaded', 'Expected room in the queue, got a full one. Try again later.', {
          details: { limit: 'max_num_queued_reqs' },
        });
      }
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
    this.#running += 1;
  }
}

/** One request under way. */
class FakeRun {
  finish: FinishEvent | undefined;
  hasFailed = false;
  readonly #engine: FakeEngine;
  readonly #request: GenerateRequest;
  readonly #signal: AbortSignal;
  readonly #options: FakeEngineOptions;
  readonly #script: FakeScript;
  readonly #answer: readonly TokenId[];
  readonly #text: FakeTextStream;
  readonly #acceptedAt: number;
  readonly #queueMs: number;
  readonly #maxTokens: number;
  readonly #rounds: RoundRecord[] = [];
  readonly #noDraft: Partial<Record<ShortDraftReason, number>> = {};
  readonly #shortened: Partial<Record<ShortDraftReason, number>> = {};
  #emitted = 0;
  #firstTokenMs: number | null = null;
  #drafterError: string | null = null;

  constructor(
    engine: FakeEngine,
    request: GenerateRequest,
    signal: AbortSignal,
    options: FakeEngineOptions,
    acceptedAt: number,
  ) {
    this.#engine = engine;
    this.#request = request;
    this.#signal = signal;
    this.#options = options;
    this.#script = options.script?.(request) ?? defaultScript(request);
    this.#answer = [...encodeBytes(this.#script.text), EOS_TOKEN];
    const { shownTokens = [], skipSpecialTokens } = request;
    const isShown = (token: TokenId) =>
      !skipSpecialTokens || !isSpecial(token, options.specialTags) || shownTokens.includes(token);
    this.#text = new FakeTextStream({ ...request, isShown });
    this.#acceptedAt = acceptedAt;
    this.#queueMs = engine.clock.monotonicMs() - acceptedAt;
    this.#maxTokens = Math.min(
      request.maxTokens ?? Number.POSITIVE_INFINITY,
      engine.info.maxContext - request.promptTokens.length,
    );
  }

  async *events(): AsyncGenerator<DecodeEvent, void, undefined> {
    const { observer } = this.#options;
    observer?.onStart(this.#request, {
      queriedTokens: this.#request.promptTokens.length,
      cachedTokens: this.#cachedTokens,
    });
    for (let step = 0; this.finish === undefined; step++) {
      await this.#beforeStep(step);
      if (this.#signal.aborted) this.finish = this.end('aborted', null);
      else yield step === 0 ? this.#promptStep() : this.#roundStep(step - 1);
    }
    yield this.finish;
  }

  end(reason: FinishReason, stopReason: string | TokenId | null): FinishEvent {
    const { clock } = this.#engine;
    return {
      type: 'finish',
      reason,
      stopReason,
      promptTokens: this.#request.promptTokens.length,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#emitted,
      speculation: {
        drafter: this.#drafter?.name ?? 'none',
        maxDraftTokens: this.#limit,
        rounds: this.#rounds,
        noDraft: this.#noDraft,
        shortened: this.#shortened,
        drafterError: this.#drafterError,
      },
      timing: { queueMs: this.#queueMs, firstTokenMs: this.#firstTokenMs, totalMs: clock.monotonicMs() - this.#acceptedAt },
      ...(this.#request.trace ? { trace: this.#script.trace ?? [] } : {}),
    };
  }

  async #beforeStep(step: number): Promise<void> {
    await this.#options.beforeStep?.(this.#request, step);
    // A step takes at least one turn of the event loop, as a real one does.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#script.failsAt?.step !== step) return;
    this.hasFailed = true;
    throw this.#script.failsAt.error;
  }

  #promptStep(): DecodeEvent {
    this.#engine.clock.advance(STEP_MS);
    this.#firstTokenMs = this.#engine.clock.monotonicMs() - this.#acceptedAt;
    const event = this.#emit(1);
    const promptRows = this.#request.promptTokens.length - this.#cachedTokens;
    this.#report({ draftMs: 0, promptRows, decodeRows: 0, emitted: 1, rounds: [] });
    return event;
  }

  #roundStep(round: number): DecodeEvent {
    const { drafted, shortBy } = this.#draft(round);
    const draftMs = drafted > 0 ? DRAFT_MS : 0;
    this.#engine.clock.advance(STEP_MS + draftMs);
    const wouldAccept = Math.min(drafted, pick(this.#script.accepts, round) ?? drafted);
    const event = this.#emit(wouldAccept + 1);
    const emitted = event.tokens.length;
    const endedInside = emitted <= wouldAccept;
    const record: RoundRecord = {
      drafted,
      evaluated: endedInside ? emitted : Math.min(drafted, wouldAccept + 1),
      accepted: endedInside ? emitted : wouldAccept,
      emitted,
    };
    this.#rounds.push(record);
    if (shortBy !== null) {
      const counts = drafted === 0 ? this.#noDraft : this.#shortened;
      counts[shortBy] = (counts[shortBy] ?? 0) + 1;
    }
    this.#report({
      draftMs,
      promptRows: 0,
      decodeRows: 1 + drafted,
      emitted,
      rounds: [{ ...record, shortBy, drafter: this.#drafter?.name ?? 'none' }],
    });
    return event;
  }

  #draft(round: number): { readonly drafted: number; readonly shortBy: ShortDraftReason | null } {
    const { info } = this.#engine;
    const left = this.#maxTokens - this.#emitted;
    const none = (shortBy: ShortDraftReason) => ({ drafted: 0, shortBy });
    if (info.drafters.length === 0) return none('no-drafter');
    if (this.#drafter === null) return none('disabled-by-request');
    if (left === 1) return none('near-max-tokens');
    if (this.#script.drafterFailsAt !== undefined && round >= this.#script.drafterFailsAt) {
      this.#drafterError = 'the scripted drafter failed';
      return none('drafter-failed');
    }
    const room = Math.min(this.#limit, left - 1);
    const drafted = Math.min(room, pick(this.#script.proposes, round) ?? room);
    if (drafted < room) return { drafted, shortBy: 'no-proposal' };
    return { drafted, shortBy: room < this.#limit ? 'near-max-tokens' : null };
  }

  get #cachedTokens(): number {
    return this.#script.cachedTokens ?? 0;
  }

  get #drafter() {
    const { drafters } = this.#engine.info;
    const { drafter: name } = this.#request;
    return (name === null ? drafters[0] : drafters.find((drafter) => drafter.name === name)) ?? null;
  }

  get #limit(): number {
    const most = this.#drafter?.maxDraftTokens ?? 0;
    return Math.min(most, this.#request.draftTokens ?? most);
  }

  /** Emits up to `count` tokens of the answer, fewer when it ends among them. */
  #emit(count: number): DecodeEvent & { readonly type: 'tokens' } {
    const tokens: TokenId[] = [];
    while (tokens.length < count && this.finish === undefined) {
      const token = this.#answer[this.#emitted % this.#answer.length]!;
      this.#emitted += 1;
      tokens.push(token);
      this.finish = this.#stopAt(token);
    }
    const { logprobs = null, promptLogprobs = null, promptTokens } = this.#request;
    const start = this.#emitted - tokens.length;
    return {
      type: 'tokens',
      tokens,
      text: this.#text.take(this.finish !== undefined),
      ...(logprobs === null ? {} : { logprobs: tokens.map((token, i) => fakeLogprobs(token, start + i, logprobs)) }),
      ...(promptLogprobs === null || start > 0
        ? {}
        : { promptLogprobs: promptTokens.slice(1).map((token, i) => fakeLogprobs(token, i + 1, promptLogprobs)) }),
    };
  }

  #stopAt(token: TokenId): FinishEvent | undefined {
    if (token === EOS_TOKEN && !this.#request.ignoreEos) return this.end('stop', null);
    if (this.#request.stopTokenIds.includes(token)) return this.end('stop', token);
    this.#text.push(token);
    if (this.#text.matched !== null) return this.end('stop', this.#text.matched);
    return this.#emitted >= this.#maxTokens ? this.end('length', null) : undefined;
  }

  #report(step: Omit<StepReport, 'durationMs' | 'sequences' | 'shadows'>): void {
    this.#engine.steps += 1;
    this.#options.observer?.onStep({ durationMs: STEP_MS, sequences: 1, shadows: [], ...step });
  }
}

function pick(list: readonly number[] | undefined, round: number): number | undefined {
  return list?.[round % list.length];
}

/** Names the prompt's length and, for a sampled request, the seed: other requests get other answers. */
function defaultScript(request: GenerateRequest): FakeScript {
  const { sampling, promptTokens } = request;
  const drawn = sampling.temperature === 0 ? '' : ` drawn with ${sampling.seed}`;
  return { text: `An answer to ${promptTokens.length} tokens${drawn}.`, accepts: [2, 4, 0, 3] };
}
