/** The pass that measures serving: drafts are verified, and each round is written down with what the target thought of it. */
import { FIXED_LENGTH } from '../../decode/draft-length/fixed-length.ts';
import type { LengthPolicy } from '../../decode/draft-length/length-policy.ts';
import { logPartition, rankOf } from '../../sampling/row-measures.ts';
import type { MeasuredRound, ServedAnswer } from './answer-records.ts';
import { type DecodeJob, type DecodeJobsOptions, decodeJobs, type JobObserver, type ObservedRound } from './decode-jobs.ts';
import { rounded } from './rounded.ts';

export interface ServedPassOptions extends Pick<DecodeJobsOptions, 'target' | 'drafters' | 'jobs' | 'concurrency' | 'signal'> {
  readonly draftTokens: number;
  /** Default: every draft is verified whole. */
  readonly lengths?: LengthPolicy;
  readonly onAnswer: (answer: ServedAnswer) => void;
}

/** @throws AbortedError */
export function servedPass(options: ServedPassOptions): Promise<void> {
  return decodeJobs({
    lengths: FIXED_LENGTH,
    ...options,
    observe: (job) => new ServedObserver(job, options.onAnswer),
  });
}

class ServedObserver implements JobObserver {
  readonly #job: DecodeJob;
  readonly #onAnswer: (answer: ServedAnswer) => void;
  readonly #rounds: MeasuredRound[] = [];

  constructor(job: DecodeJob, onAnswer: (answer: ServedAnswer) => void) {
    this.#job = job;
    this.#onAnswer = onAnswer;
  }

  onRound({ outcome, rows, sayings }: ObservedRound): void {
    const { round, sequence, emitted } = outcome;
    if (round === null) return;
    const proposal = sayings[0]?.proposal ?? { tokens: [] };
    const draft = proposal.tokens.slice(0, round.drafted);
    const temperature = this.#job.sampling.temperature || 1;
    const draftProbabilities: number[] = [];
    const emittedProbabilities: number[] = [];
    let rejectedRank: number | null = null;
    for (let i = 0; i < Math.max(round.evaluated, emitted.length); i++) {
      const logits = rows.result.logits(rows.span, rows.logitsFrom + i);
      const partition = logPartition(logits, temperature);
      const probability = (token: number) => rounded(Math.exp(logits[token]! / temperature - partition));
      const token = draft[i];
      if (i < round.evaluated && token !== undefined) draftProbabilities.push(probability(token));
      if (i < emitted.length) emittedProbabilities.push(probability(emitted[i]!));
      if (i === round.accepted && i < round.evaluated && token !== undefined) rejectedRank = rankOf(logits, token);
    }
    this.#rounds.push({
      position: sequence.tokens.length - emitted.length - 1,
      evaluated: round.evaluated,
      accepted: round.accepted,
      emitted: round.emitted,
      shortBy: outcome.shortBy,
      draft: [...draft],
      confidences: proposal.probabilities?.slice(0, round.drafted).map(rounded) ?? null,
      draftProbabilities,
      emittedProbabilities,
      rejectedRank,
    });
  }

  onEnd(finish: 'stop' | 'length', tokens: readonly number[]): void {
    const { id, category, promptTokens, sampling } = this.#job;
    this.#onAnswer({
      pass: 'served',
      id,
      category,
      temperature: sampling.temperature,
      promptTokens: [...promptTokens],
      tokens: [...tokens],
      finish,
      rounds: this.#rounds,
    });
  }
}
