/** Many requests on one target: requests join and leave between rounds, and share the rounds. */
import { abortWith } from '../core/abort-with.ts';
import { AbortedError } from '../core/aborted-error.ts';
import { AppError } from '../core/app-error.ts';
import type { DecodeEvent } from '../core/decode-event.ts';
import type { TokenRules } from '../core/token-rules.ts';
import { decodeRound, type RoundOutcome } from '../decode/round.ts';
import { RoundFailedError } from '../decode/round-failed-error.ts';
import { StepPacer } from '../decode/step-pacer.ts';
import type { Ending } from '../decode/stop-rule.ts';
import { abandonedRound } from './abandoned-round.ts';
import { Admission } from './admission.ts';
import { AnswerRules } from './answer-rules.ts';
import type { DrafterStatus, Engine, EngineInfo, EngineLoad, GenerateRequest, QueuedRequest, SwapRecord } from './engine.ts';
import { EngineDrafters } from './engine-drafters.ts';
import { type DecodeEngineParts, engineInfo } from './engine-parts.ts';
import { EngineReports, type MovedRequest } from './engine-reports.ts';
import { type IdleTask, IdleWork } from './idle-work.ts';
import { TokenizerText } from './model-text.ts';
import { PrefixCache, SNAPSHOT_POSITIONS } from './prefix-cache.ts';
import { snapshotPrompts } from './prompt-snapshots.ts';
import { RunningRequest, type Started } from './running-request.ts';
import { SelfAudit } from './self-audit.ts';
import { findDrafter } from './served-drafter.ts';
import { startRequest } from './start-request.ts';

export class DecodeEngine implements Engine {
  readonly info: EngineInfo;
  readonly text: TokenizerText;
  readonly #parts: DecodeEngineParts;
  readonly #drafters: EngineDrafters;
  readonly #reports: EngineReports;
  readonly #audit: SelfAudit;
  readonly #idleWork = new IdleWork();
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
    const { target, maxWaiting, limits, shadow = null, cacheBytes = Number.POSITIVE_INFINITY } = parts;
    this.#parts = parts;
    this.#drafters = new EngineDrafters(parts);
    this.#reports = new EngineReports(parts.observers, this.#drafters.swaps);
    this.#audit = new SelfAudit(parts.auditRate ?? 0);
    this.#rules = new AnswerRules(target.facts, parts.grammars ?? null);
    this.#prefixes = new PrefixCache(target, limits.prefixCacheBytes);
    this.#admission = new Admission({
      target,
      drafters: () => this.#drafters.current,
      prefixes: this.#prefixes,
      maxWaiting,
      limits,
      cacheBytes,
      shadow,
    });
    this.#pacer = new StepPacer(limits.maxStepMs);
    this.text = new TokenizerText(parts.tokenizer, parts.chatTemplate, parts.prompts ?? null);
    this.info = engineInfo(parts);
    this.#loop = this.#run();
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
    return this.#drafters.status(this.#reports.statistics);
  }

  async loadDrafter(name: string, path: string): Promise<SwapRecord> {
    try {
      return await this.#drafters.load(name, path, this.#stop.signal);
    } finally {
      this.#wakeUp();
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
    const served = new RunningRequest(this.#drafters.assigned(request), left.signal);
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

  /** @throws AppError as `Engine.generate` says */
  #refuse(request: GenerateRequest): void {
    this.#refuseWhileDraining();
    this.#admission.check(request);
    // A name that no drafter has is told at once, not when it is the request's turn.
    findDrafter(this.#drafters.current, request.drafter);
  }

  #refuseWhileDraining(): void {
    if (this.#draining) throw new AppError('unavailable', 'The server is shutting down; send the request to another one');
  }

  /**
   * Has something done with the target while no request wants it, ahead of looking at answers.
   * @returns when it is done, or the engine has ended
   */
  async whenIdle(task: IdleTask): Promise<void> {
    const done = this.#idleWork.add(task);
    this.#wakeUp();
    await done;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#dropAborted();
      if (this.#drafters.swaps.hasRetired) await this.#drafters.disposeUnused(this.#running, this.#prefixes);
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
    this.#idleWork.end();
  }

  /** Until something comes; what can wait for such a moment is done meanwhile. */
  async #idle(): Promise<void> {
    const woken = new AbortController();
    const wake = new Promise<void>((resolve) => {
      this.#wake = () => {
        // Readers of answers that have ended leave too.
        if (this.#admission.waiting.length > 0 || this.#stop.signal.aborted) woken.abort();
        resolve();
      };
    });
    if (this.#idleWork.due) {
      await this.#idleWork.next(this.#drafters.current, wake, woken.signal);
    } else if (this.#audit.due) {
      const report = await this.#audit.next(this.#parts.target, this.#parts.tokenizer, woken.signal);
      if (report !== null) this.#reports.onAudit(report);
    } else {
      await wake;
    }
    this.#wake = null;
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
    const { request, shadows, makeProcessor } = running;
    const started = startRequest(request, {
      ...this.#parts,
      drafters: this.#drafters.current,
      shadows,
      makeProcessor,
      prefixes: this.#prefixes,
      running: this.#running.flatMap((other) => other.prefix() ?? []),
    });
    running.start(started);
    const lookedUp = this.#prefixes.enabled && shadows.length === 0 && (request.promptLogprobs ?? null) === null;
    this.#reports.onStart(request, started, lookedUp ? request.promptTokens.length : 0);
  }

  async #round(): Promise<void> {
    const { target } = this.#parts;
    await target.prepare?.(this.#running.length);
    // Prompts share the rows of a step in this order. Whom it has no room for any more waits for the end of another.
    const requests = this.#running.toSorted((a, b) => a.rank - b.rank).slice(0, target.maxSequences);
    const outcome = await this.#decode(requests);
    if (outcome === null) return;
    this.#deliver(requests, outcome);
    if (this.#takesSnapshots) await snapshotPrompts(this.#running, this.#prefixes, this.#stop.signal);
  }

  /** @returns null when nobody waited for it any more, or it failed */
  async #decode(requests: readonly RunningRequest[]): Promise<RoundOutcome | null> {
    const sequences = requests.flatMap(({ started }) => (started === null ? [] : [started.sequence]));
    const readers = requests.map(({ signal }) => signal);
    using abandoned = abandonedRound(this.#stop.signal, readers);
    const block = this.#takesSnapshots ? SNAPSHOT_POSITIONS : undefined;
    try {
      return await decodeRound(this.#parts.target, sequences, abandoned.signal, this.#pacer.promptRows(), block);
    } catch (error) {
      if (!(error instanceof AbortedError)) this.#failRound(requests, error);
      return null;
    }
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

  #deliver(requests: readonly RunningRequest[], round: RoundOutcome): void {
    const outcomes = new Map(round.sequences.map((outcome) => [outcome.sequence, outcome]));
    const moved = requests.flatMap((running): MovedRequest[] => {
      const { started } = running;
      const outcome = started && outcomes.get(started.sequence);
      return started && outcome ? [{ running, started, outcome }] : [];
    });
    const { sequences, draftMs, verifyMs, commitMs } = round;
    const promptRows = sequences.reduce((sum, outcome) => sum + outcome.promptRows, 0);
    const decodes = sequences.some((outcome) => outcome.round !== null);
    this.#pacer.observe(promptRows, decodes, draftMs + verifyMs + commitMs);
    // Counted before it is passed on: whoever reads an answer finds it in the counters.
    this.#reports.onStep(round, moved);
    for (const { running, started, outcome } of moved) {
      const { ending } = started.sequence;
      running.deliver(outcome);
      if (outcome.failure !== null) this.#fail(running, outcome.failure.error);
      else if (ending !== null) this.#end(running, started, ending);
    }
  }

  #end(running: RunningRequest, { drafter, sequence }: Started, ending: Ending): void {
    this.#admission.remove(running);
    this.#retain(running);
    if (!this.info.drafters.some(({ name, synthetic }) => name === drafter && synthetic)) {
      const { request, makeProcessor } = running;
      const tokens = sequence.tokens.slice(sequence.promptLength);
      this.#audit.offer({ request, makeProcessor, drafter, tokens, ending });
    }
    this.#reports.onFinish(running, running.finish(ending));
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
    this.#reports.onFinish(request, request.finish({ reason: 'aborted', stopReason: null }));
  }

  #fail(request: RunningRequest, error: unknown): void {
    this.#admission.remove(request);
    this.#reports.onFinish(request, request.fail(error));
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

  #wakeUp(): void {
    this.#wake?.();
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#draining = true;
    const POLL_MS = 20;
    while (this.#admission.waiting.length + this.#running.length > 0 && !signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    await this.#halt();
  }

  /** Aborts what is still there. */
  async #halt(): Promise<void> {
    this.#draining = true;
    this.#stop.abort();
    this.#wakeUp();
    await this.#loop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#halt();
    this.#prefixes[Symbol.dispose]();
    const gone = await this.#drafters.dispose();
    await this.#parts.grammars?.[Symbol.asyncDispose]();
    await this.#parts.prompts?.[Symbol.asyncDispose]();
    // A drafter that is left to the end of the process may use the target's weights.
    if (gone) await this.#parts.target[Symbol.asyncDispose]();
  }
}
