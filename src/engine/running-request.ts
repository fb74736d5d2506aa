/** A request on its way through the engine. */
import type { DecodeEvent, FinishEvent } from '../core/decode-event.ts';
import type { Phase } from '../core/round-trace.ts';
import type { SequenceOutcome } from '../decode/round.ts';
import type { Sequence } from '../decode/sequence.ts';
import type { Ending } from '../decode/stop-rule.ts';
import type { Drafter } from '../drafter/drafter.ts';
import { type MakeProcessor, NO_PROCESSOR } from './answer-rules.ts';
import type { AnswerText } from './answer-text.ts';
import type { GenerateRequest } from './engine.ts';
import { EventChannel } from './event-channel.ts';
import type { PrefixSource } from './prefix-cache.ts';
import type { ServedDrafter } from './served-drafter.ts';
import type { PromptUnderWay } from './shared-beginning.ts';

export interface Started {
  readonly sequence: Sequence;
  readonly text: AnswerText;
  /** Name of the drafter that serves it, `none` when there is none. */
  readonly drafter: string;
  /** That drafter, also when it failed and takes part no more; null for plain decoding. */
  readonly given: Drafter | null;
  readonly maxDraftTokens: number;
  /** Of the prompt, reused from earlier sequences. */
  readonly cachedTokens: number;
  /** Of each token so far, the prompt's included. */
  phases(): readonly Phase[];
}

/**
 * What one step of priority is worth in waiting. So a request comes to its turn however many more urgent ones come after it,
 * and who wants a strict order leaves enough between the numbers.
 */
const PRIORITY_MS = 10_000;

export class RunningRequest {
  readonly request: GenerateRequest;
  readonly signal: AbortSignal;
  readonly events = new EventChannel<DecodeEvent>();
  makeProcessor: MakeProcessor = NO_PROCESSOR;
  /** Of the cache budget, from before it starts until it ends. */
  reservedBytes = 0;
  /** Drafters that will be scored beside the one that serves it. */
  shadows: readonly ServedDrafter[] = [];
  readonly #arrived: number;
  #started: Started | null = null;
  #startedAt: number | null = null;
  #firstTokenAt: number | null = null;

  /** @param arrived milliseconds, by the monotonic clock */
  constructor(request: GenerateRequest, signal: AbortSignal, arrived = performance.now()) {
    this.#arrived = arrived;
    this.request = request;
    this.signal = signal;
  }

  /** Lower ones are served first. */
  get rank(): number {
    return this.#arrived + PRIORITY_MS * (this.request.priority ?? 0);
  }

  get started(): Started | null {
    return this.#started;
  }

  /** What others may begin with; null before it has started. */
  prefix(): PrefixSource | null {
    if (this.#started === null) return null;
    const { tokens, cache, drafting } = this.#started.sequence;
    return { tokens, cache, draft: drafting, salt: this.request.cacheSalt ?? null };
  }

  /** Its prompt, while that is being computed and others may begin with it. */
  promptUnderWay(): PromptUnderWay | null {
    const source = this.prefix();
    if (source === null || this.#started === null || this.#started.sequence.emitted > 0) return null;
    return { ...source, promptLength: this.#started.sequence.promptLength };
  }

  start(started: Started): void {
    this.#started = started;
    this.#startedAt = performance.now();
  }

  /** Passes on what a round emitted. */
  deliver({ emitted, logprobs }: SequenceOutcome): void {
    if (this.#started === null || emitted.length === 0) return;
    const { sequence, text } = this.#started;
    const { promptLogprobs } = sequence;
    const isFirst = sequence.emitted === emitted.length;
    this.#firstTokenAt ??= performance.now();
    this.events.push({
      type: 'tokens',
      tokens: emitted,
      text: sequence.ending === null ? text.take() : text.finish(),
      ...(logprobs === null ? {} : { logprobs }),
      ...(isFirst && promptLogprobs !== null ? { promptLogprobs } : {}),
    });
  }

  /** Frees what it holds and tells its reader that it has ended. */
  finish(ending: Ending): FinishEvent {
    this.release();
    const finish = this.#finishEvent(ending);
    this.events.push(finish);
    this.events.close();
    return finish;
  }

  /** Frees what it holds and tells its reader why. */
  fail(error: unknown): FinishEvent {
    this.release();
    this.events.fail(error);
    return this.#finishEvent({ reason: 'error', stopReason: null });
  }

  release(): void {
    this.#started?.sequence[Symbol.dispose]();
  }

  #finishEvent(ending: Ending): FinishEvent {
    const now = performance.now();
    const sequence = this.#started?.sequence;
    return {
      type: 'finish',
      ...ending,
      promptTokens: this.request.promptTokens.length,
      cachedTokens: this.#started?.cachedTokens ?? 0,
      completionTokens: sequence?.emitted ?? 0,
      speculation: {
        drafter: this.#started?.drafter ?? 'none',
        maxDraftTokens: this.#started?.maxDraftTokens ?? 0,
        rounds: sequence?.rounds ?? [],
        noDraft: Object.fromEntries(sequence?.noDraft ?? []),
        shortened: Object.fromEntries(sequence?.shortened ?? []),
        drafterError: sequence?.drafterError ?? null,
      },
      timing: {
        queueMs: (this.#startedAt ?? now) - this.#arrived,
        firstTokenMs: this.#firstTokenAt === null ? null : this.#firstTokenAt - this.#arrived,
        totalMs: now - this.#arrived,
      },
      ...this.#trace(),
    };
  }

  #trace(): Pick<FinishEvent, 'trace'> {
    const traces = this.#started?.sequence.traces;
    if (!traces) return {};
    const phases = this.#started!.phases();
    return { trace: traces.map((round) => ({ ...round, phase: phases[round.position]! })) };
  }
}
