/** Decodes many requests together, round by round as the server does, and shows each round to an observer. */
import { AbortedError } from '../../core/aborted-error.ts';
import { AppError } from '../../core/app-error.ts';
import type { SamplingParams } from '../../core/sampling-params.ts';
import type { TokenId } from '../../core/token.ts';
import type { LengthPolicy } from '../../decode/draft-length/length-policy.ts';
import { decodeRound, type SequenceOutcome } from '../../decode/round.ts';
import { Sequence } from '../../decode/sequence.ts';
import type { Target } from '../../target/target.ts';
import { EndTokens } from './end-tokens.ts';
import type { MeasuredDrafter } from './measured-drafter.ts';
import { type LastRows, RememberingTarget } from './remembering-target.ts';
import { type Saying, WatchedDrafter } from './watched-drafter.ts';

/** A request to decode. */
export interface DecodeJob {
  readonly id: string;
  readonly category: string;
  /** Fewer than the positions of the context. */
  readonly promptTokens: readonly TokenId[];
  readonly sampling: SamplingParams;
  /** Longest answer. */
  readonly maxTokens: number;
}

/** What a round did to one request, while the step's logits and the drafters' can still be read. */
export interface ObservedRound {
  readonly outcome: SequenceOutcome;
  readonly rows: LastRows;
  /** By drafter; empty while the prompt is computed. */
  readonly sayings: readonly Saying[];
}

export interface JobObserver {
  /** Called for every round that emitted something. */
  onRound(round: ObservedRound): void;
  onEnd(finish: 'stop' | 'length', tokens: readonly TokenId[]): void;
}

export interface DecodeJobsOptions {
  readonly target: Target;
  /** The first one's drafts are verified as far as `lengths` lets them. */
  readonly drafters: readonly MeasuredDrafter[];
  readonly draftTokens: number;
  readonly lengths: LengthPolicy;
  readonly jobs: readonly DecodeJob[];
  /** Requests decoded together. */
  readonly concurrency: number;
  readonly observe: (job: DecodeJob) => JobObserver;
  readonly signal?: AbortSignal;
}

interface Running {
  readonly sequence: Sequence;
  readonly state: { readonly sayings: readonly Saying[] };
  readonly observer: JobObserver;
}

/** @throws AbortedError when the signal ended it; jobs that ended before have been reported */
export async function decodeJobs(options: DecodeJobsOptions): Promise<void> {
  const target = new RememberingTarget(options.target);
  const { maxContext, eosTokenIds } = target.facts;
  const drafter = new WatchedDrafter(options.drafters);
  const waiting = [...options.jobs];
  const never = new AbortController().signal;
  const signal = options.signal ?? never;
  const limit = Math.min(options.concurrency, target.maxSequences);
  const running = new Map<Sequence, Running>();
  try {
    for (;;) {
      while (running.size < limit) {
        const job = waiting.shift();
        if (job === undefined) break;
        const room = maxContext - job.promptTokens.length;
        const state = drafter.open();
        const sequence = new Sequence({
          promptTokens: job.promptTokens,
          sampling: job.sampling,
          stopRule: new EndTokens(eosTokenIds),
          maxTokens: Math.min(job.maxTokens, room),
          limitedBy: job.maxTokens <= room ? 'max-tokens' : 'context',
          cache: target.openCache(),
          drafting: { drafter, state, limit: options.draftTokens, lengths: options.lengths },
        });
        running.set(sequence, { sequence, state, observer: options.observe(job) });
      }
      if (running.size === 0) return;
      if (signal.aborted) throw new AbortedError('Measuring');
      const { sequences } = await decodeRound(target, [...running.keys()], signal);
      for (const outcome of sequences) report(outcome, target, running);
    }
  } finally {
    for (const { sequence } of running.values()) sequence[Symbol.dispose]();
  }
}

function report(outcome: SequenceOutcome, target: RememberingTarget, running: Map<Sequence, Running>): void {
  const { sequence } = outcome;
  const { observer, state } = running.get(sequence) as Running;
  const rows = target.last(sequence.cache);
  if (sequence.drafterError !== null) {
    throw new AppError(
      'incompatible_drafter',
      `Expected a drafter that can be measured, got one that failed: ${sequence.drafterError}; check it with inspect or diagnose`,
    );
  }
  if (outcome.emitted.length > 0 && rows !== null) {
    observer.onRound({ outcome, rows, sayings: outcome.round === null ? [] : state.sayings });
  }
  if (sequence.ending === null) return;
  running.delete(sequence);
  sequence[Symbol.dispose]();
  const { reason } = sequence.ending;
  observer.onEnd(reason === 'stop' ? 'stop' : 'length', sequence.tokens.slice(sequence.promptLength));
}
