/**
 * The pass that measures drafters by teacher forcing: the target decodes plainly, drafters propose behind every token, and
 * nothing of it is verified. So drafters see exactly what serving shows them, the text is plain decoding's, and all drafters
 * are asked about the same prefixes.
 */
import type { LengthPolicy } from '../../decode/draft-length/length-policy.ts';
import { largestIndices, logPartition, overlap } from '../../sampling/row-measures.ts';
import { type ForcedAnchor, type ForcedAnswer, LABEL_RANKS, TOP_TOKENS } from './answer-records.ts';
import { type DecodeJob, type DecodeJobsOptions, decodeJobs, type JobObserver, type ObservedRound } from './decode-jobs.ts';
import type { MeasuredDrafter } from './measured-drafter.ts';
import { rounded } from './rounded.ts';
import type { Saying } from './watched-drafter.ts';

/** Drafts are made in full, and none of them is verified. */
const UNVERIFIED: LengthPolicy = {
  ask: (sequences) => sequences.map(({ budget }) => ({ tokens: budget, reason: null })),
  trim: (drafts) => drafts.map(() => ({ tokens: 0, reason: null })),
  learn: () => undefined,
  learnStep: () => undefined,
};

export interface ForcedPassOptions extends Pick<DecodeJobsOptions, 'target' | 'drafters' | 'jobs' | 'concurrency' | 'signal'> {
  readonly draftTokens: number;
  readonly onAnswer: (answer: ForcedAnswer) => void;
}

/** @throws AbortedError */
export function forcedPass(options: ForcedPassOptions): Promise<void> {
  return decodeJobs({
    ...options,
    lengths: UNVERIFIED,
    observe: (job) => new ForcedObserver(job, options.drafters, options.onAnswer),
  });
}

class ForcedObserver implements JobObserver {
  readonly #job: DecodeJob;
  readonly #drafters: readonly DrafterNotes[];
  readonly #onAnswer: (answer: ForcedAnswer) => void;
  readonly #topTokens: number[][] = [];
  readonly #topProbabilities: number[][] = [];

  constructor(job: DecodeJob, drafters: readonly MeasuredDrafter[], onAnswer: (answer: ForcedAnswer) => void) {
    this.#job = job;
    this.#drafters = drafters.map((drafter) => new DrafterNotes(drafter));
    this.#onAnswer = onAnswer;
  }

  onRound({ outcome, rows, sayings }: ObservedRound): void {
    // Nothing was verified, so a round chooses one token, behind its last known row.
    const logits = rows.result.logits(rows.span, rows.logitsFrom);
    const temperature = this.#job.sampling.temperature || 1;
    const target = { logits, temperature, logPartition: logPartition(logits, temperature) };
    const top = largestIndices(logits, TOP_TOKENS);
    this.#topTokens.push(top);
    this.#topProbabilities.push(top.map((token) => rounded(Math.exp(logits[token]! / temperature - target.logPartition))));
    for (const [i, notes] of this.#drafters.entries()) {
      const saying = sayings[i];
      if (saying !== undefined) notes.addAnchor(saying);
      notes.addLabel(outcome.emitted[0] as number, target);
    }
  }

  onEnd(finish: 'stop' | 'length', tokens: readonly number[]): void {
    const { id, category, promptTokens, sampling } = this.#job;
    this.#onAnswer({
      pass: 'forced',
      id,
      category,
      temperature: sampling.temperature,
      promptTokens: [...promptTokens],
      tokens: [...tokens],
      finish,
      topTokens: this.#topTokens,
      topProbabilities: this.#topProbabilities,
      anchors: Object.fromEntries(this.#drafters.map(({ name, anchors }) => [name, anchors])),
    });
  }
}

/** A draft whose labels are still coming. */
interface OpenDraft {
  /** [slots][LABEL_RANKS] target ids, most likely first. */
  readonly likely: readonly (readonly number[])[] | null;
  readonly ranks: number[];
  readonly distributions: readonly { readonly logits: Float32Array; readonly logPartition: number }[] | null;
  readonly overlaps: number[];
  readonly slots: number;
  labels: number;
}

/** What one drafter said about one answer. */
class DrafterNotes {
  readonly name: string;
  readonly anchors: ForcedAnchor[] = [];
  readonly #keptTokens: Int32Array | null;
  #open: OpenDraft[] = [];

  constructor({ name, keptTokens }: MeasuredDrafter) {
    this.name = name;
    this.#keptTokens = keptTokens;
  }

  addAnchor({ proposal, logits }: Saying): void {
    const slots = proposal.tokens.length;
    // Whole distributions are kept of one draft at a time, which bounds the memory they take.
    const compare = logits !== null && !this.#open.some(({ distributions }) => distributions !== null);
    const likely = logits && proposal.tokens.map((_, slot) => this.#mostLikely(logits(slot)));
    const ranks: number[] = [];
    const overlaps: number[] = [];
    const distributions = compare
      ? proposal.tokens.map((_, slot) => {
          const own = logits(slot).slice();
          return { logits: own, logPartition: logPartition(own) };
        })
      : null;
    this.anchors.push({
      draft: [...proposal.tokens],
      confidences: proposal.probabilities?.map(rounded) ?? null,
      labelRanks: likely === null ? null : ranks,
      overlaps: compare ? overlaps : null,
    });
    if (slots > 0) this.#open.push({ likely, ranks, distributions, overlaps, slots, labels: 0 });
  }

  /** Compares every open draft with the token that has come. */
  addLabel(label: number, target: Parameters<typeof overlap>[2]): void {
    for (const draft of this.#open) {
      const slot = draft.labels++;
      if (draft.likely !== null) {
        const rank = draft.likely[slot]!.indexOf(label);
        draft.ranks.push(rank < 0 ? LABEL_RANKS : rank);
      }
      const distribution = draft.distributions?.[slot];
      if (distribution !== undefined) draft.overlaps.push(rounded(overlap(distribution, this.#keptTokens, target)));
    }
    this.#open = this.#open.filter(({ labels, slots }) => labels < slots);
  }

  #mostLikely(logits: Float32Array): number[] {
    return largestIndices(logits, LABEL_RANKS).map((row) => this.#keptTokens?.[row] ?? row);
  }
}
