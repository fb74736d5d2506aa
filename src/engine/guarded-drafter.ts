/** A drafter whose calls end: one that does not answer in time is left alone for a while. */
import { abortWith } from '../core/abort-with.ts';
import type { Position } from '../core/token.ts';
import type { Drafter, DraftRequest, DraftState, ForkedState, Proposal } from '../drafter/drafter.ts';
import type { ServedDrafter } from './served-drafter.ts';

/** A first call may load what later ones find, so it may take so many times as long. */
const FIRST_CALL_PATIENCE = 6;

export interface GuardOptions {
  readonly name: string;
  readonly timeoutMs: number;
  readonly quarantineMs: number;
  /** Told when the drafter was put away. */
  readonly onQuarantine: (reason: string) => void;
}

/**
 * The sequences that were asked about go on without it, as after any other failure. New ones do not get it before the
 * quarantine has passed and the call that hung has come to its end, as a drafter serves one call at a time. A drafter
 * that never returns to the event loop hangs everything; nothing here can help that.
 */
export class GuardedDrafter implements Drafter {
  readonly kind: string;
  readonly maxDraftTokens: number;
  readonly taps: readonly number[];
  readonly bytesPerPosition: number;
  readonly bytesPerSequence: number;
  readonly fork?: NonNullable<Drafter['fork']>;
  readonly synthetic?: NonNullable<Drafter['synthetic']>;
  readonly #inner: Drafter;
  readonly #options: GuardOptions;
  /** The call that hangs. */
  #hung: Promise<void> | null = null;
  #quarantinedUntil = Number.NEGATIVE_INFINITY;

  constructor(inner: Drafter, options: GuardOptions) {
    this.#inner = inner;
    this.#options = options;
    this.kind = inner.kind;
    this.maxDraftTokens = inner.maxDraftTokens;
    this.taps = inner.taps;
    this.bytesPerPosition = inner.bytesPerPosition ?? 0;
    this.bytesPerSequence = inner.bytesPerSequence ?? 0;
    if (inner.synthetic !== undefined) this.synthetic = inner.synthetic;
    if (inner.fork !== undefined) this.fork = (state, length) => this.#forked(state, length);
  }

  get quarantined(): boolean {
    return this.hangs || performance.now() < this.#quarantinedUntil;
  }

  /** Whether a call is under way that nobody waits for any more; what it uses must stay. */
  get hangs(): boolean {
    return this.#hung !== null;
  }

  /** Why it is left out; null when it is not. */
  get off(): string | null {
    const { name, timeoutMs } = this.#options;
    return this.quarantined ? `${name} did not answer within ${timeoutMs} ms, and is left out for a while` : null;
  }

  /** @throws Error while the drafter is in quarantine */
  open(): DraftState {
    this.#refuseInQuarantine();
    return this.#inner.open();
  }

  #forked(state: DraftState, length: Position): ForkedState {
    this.#refuseInQuarantine();
    return this.#inner.fork!(state, length);
  }

  #refuseInQuarantine(): void {
    const { off } = this;
    if (off !== null) throw new Error(off);
  }

  /** @throws Error as {@link inTime} does */
  propose(requests: readonly DraftRequest[], signal: AbortSignal): Promise<readonly Proposal[]> {
    return this.inTime((expired) => this.#inner.propose(requests, expired), signal);
  }

  /**
   * One call of the drafter that is under the guard, with what goes before and behind it.
   * @throws Error when it takes too long, its signal having aborted then; while the drafter is in quarantine
   */
  async inTime<Result>(call: (signal: AbortSignal) => Promise<Result>, signal: AbortSignal): Promise<Result> {
    // Sequences that were not asked about when it hung still have it.
    this.#refuseInQuarantine();
    const { name, timeoutMs } = this.#options;
    const expired = new AbortController();
    const reason = `${name} did not answer within ${timeoutMs} ms`;
    using _ = abortWith(expired, signal);
    const work = call(expired.signal);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(reason));
        this.#putAway(work, reason);
        expired.abort();
      }, timeoutMs);
    });
    try {
      return await Promise.race([work, timeout]);
    } finally {
      clearTimeout(timer);
    }
  }

  #putAway(work: Promise<unknown>, reason: string): void {
    const settled = () => {
      this.#hung = null;
    };
    this.#hung = work.then(settled, settled);
    this.#quarantinedUntil = performance.now() + this.#options.quarantineMs;
    this.#options.onQuarantine(reason);
  }

  /** Waits for a call that hangs, but not for ever: what it still uses is then left to the end of the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hung !== null) {
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, this.#options.timeoutMs);
      });
      await Promise.race([this.#hung, patience]);
      clearTimeout(timer);
    }
    if (this.#hung === null) await this.#inner[Symbol.asyncDispose]();
  }
}

/**
 * For the calls before it serves.
 * @param timeoutMs of a call in service
 */
export function guardFirstCalls(name: string, drafter: Drafter, timeoutMs: number): GuardedDrafter {
  const options = { name, timeoutMs: FIRST_CALL_PATIENCE * timeoutMs, quarantineMs: 0, onQuarantine: () => undefined };
  return new GuardedDrafter(drafter, options);
}

/** A drafter as an engine serves it. */
export interface GuardedServed extends ServedDrafter {
  readonly drafter: GuardedDrafter;
}
