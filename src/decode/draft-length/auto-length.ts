/** Drafts as long as they pay: expected tokens per millisecond decide, before drafting and after it. */
import type { Proposal } from '../../drafter/drafter.ts';
import type { Sequence } from '../sequence.ts';
import { AcceptanceModel } from './acceptance-model.ts';
import { bestLengths } from './best-lengths.ts';
import type { CostModel } from './cost-model.ts';
import type { DraftLimit, LengthPolicy, StepContext } from './length-policy.ts';

/**
 * Each sequence has an account of what its drafts have saved, in plain rounds of its own. Single drafts say little: one
 * in two fails even where drafting pays, so it goes on until this much is lost.
 */
const CREDIT = 1.5;
/** Savings that count: more would hide for long that the text has changed. */
const MOST_SAVED = 3;
/** Rounds without drafts after that, which keep the loss at 2 %; doubled each time that it is lost again. */
const FIRST_PAUSE = 75;
const LAST_PAUSE = 300;
/** Share of the newest draft in the typical gain, from which a new sequence starts as if it had made so many drafts. */
const TYPICAL_RATE = 0.02;
const HEAD_START = 10;
/** Rounds that the longest useful draft is remembered for. */
const REACH_ROUNDS = 16;

/** What is known of one sequence. */
interface Experience {
  /** Milliseconds that drafting has saved; null before the first draft. */
  balance: number | null;
  /** Rounds that are still to go by without a draft. */
  pause: number;
  nextPause: number;
  /** Lengths chosen in the last rounds, newest last. */
  readonly chosen: number[];
}

/**
 * Two decisions each round, for all sequences of a step together.
 *
 * Whether to draft: a sequence whose drafts have cost more than they saved goes without for a while, and then gets
 * another chance, as text changes. How much to verify: the drafter's confidence, calibrated on what was accepted, gives each draft token its
 * survival; {@link bestLengths} takes those that raise the expected tokens per millisecond.
 */
export class AutoLength implements LengthPolicy {
  readonly #costs: CostModel;
  readonly #acceptance = new AcceptanceModel();
  readonly #experience = new WeakMap<Sequence, Experience>();
  /** Gain of the average sequence, where a new one starts, by the number of sequences in the step. */
  readonly #typicalGains = new Map<number, number>();

  /** @param costs of the target and of this drafter, on this machine */
  constructor(costs: CostModel) {
    this.#costs = costs;
  }

  ask(
    sequences: readonly { readonly sequence: Sequence; readonly budget: number }[],
    step: StepContext,
  ): readonly DraftLimit[] {
    return sequences.map(({ sequence, budget }) => {
      if (budget === 0) return { tokens: 0, reason: null };
      const experience = this.#experienceOf(sequence);
      if (experience.pause > 0) {
        experience.pause--;
        return { tokens: 0, reason: step.decoding > 1 ? 'load' : 'low-acceptance' };
      }
      // A draft one longer than was of use lately finds out when more would be.
      const reach = experience.chosen.length < REACH_ROUNDS ? budget : Math.max(...experience.chosen) + 1;
      return { tokens: Math.min(budget, reach), reason: reach < budget ? 'low-confidence' : null };
    });
  }

  trim(
    drafts: readonly { readonly sequence: Sequence; readonly proposal: Proposal }[],
    step: StepContext,
    draftMs: number,
  ): readonly DraftLimit[] {
    const drafting = drafts.filter(({ proposal }) => proposal.tokens.length > 0);
    if (drafting.length > 0) this.#costs.observeDraft(drafting.length, draftMs);
    const survivals = drafts.map(({ sequence, proposal }) => this.#survivals(sequence, proposal));
    const plainRows = step.decoding - drafts.length + step.promptRows;
    const stepMs = (rows: number) => this.#costs.stepMs(rows + plainRows, step.decoding);
    const choice = bestLengths(survivals, draftMs, stepMs);

    const plainMs = stepMs(drafts.length);
    const msPerToken = plainMs / step.decoding;
    const draftRows = choice.lengths.reduce((sum, length) => sum + length, 0);
    const msPerRow = draftRows === 0 ? 0 : (choice.expectedMs - draftMs - plainMs) / draftRows;
    return drafts.map(({ sequence, proposal }, i) => {
      const length = choice.lengths[i] as number;
      if (proposal.tokens.length > 0) {
        const extraTokens = (survivals[i] as readonly number[]).slice(0, length).reduce((sum, survival) => sum + survival, 0);
        const gain = extraTokens * msPerToken - length * msPerRow - draftMs / drafting.length;
        this.#learnGain(sequence, length, step.decoding, gain, msPerToken);
      }
      return {
        tokens: length,
        reason: length < proposal.tokens.length ? (step.decoding > 1 ? 'load' : 'low-confidence') : null,
      };
    });
  }

  learn(verified: Parameters<LengthPolicy['learn']>[0]): void {
    for (const { sequence, proposal, round } of verified) {
      for (let slot = 0; slot < round.evaluated; slot++) {
        this.#acceptance.observe(slotOf(sequence, proposal, slot), slot < round.accepted);
      }
    }
  }

  learnStep(rows: number, sequences: number, verifyMs: number): void {
    this.#costs.observeStep(rows, sequences, verifyMs);
  }

  #survivals(sequence: Sequence, proposal: Proposal): readonly number[] {
    let survival = 1;
    return proposal.tokens.map((_, slot) => {
      survival *= this.#acceptance.probability(slotOf(sequence, proposal, slot));
      return survival;
    });
  }

  #learnGain(sequence: Sequence, length: number, decoding: number, gain: number, plainMs: number): void {
    const experience = this.#experienceOf(sequence);
    const typical = this.#typicalGains.get(decoding) ?? 0;
    this.#typicalGains.set(decoding, typical + TYPICAL_RATE * (gain - typical));
    const before = experience.balance ?? HEAD_START * typical;
    experience.balance = Math.min(before + gain, MOST_SAVED * plainMs);
    experience.chosen.push(length);
    if (experience.chosen.length > REACH_ROUNDS) experience.chosen.shift();
    if (experience.balance === MOST_SAVED * plainMs) experience.nextPause = FIRST_PAUSE;
    if (experience.balance >= -CREDIT * plainMs) return;
    experience.pause = experience.nextPause;
    experience.nextPause = Math.min(experience.nextPause * 2, LAST_PAUSE);
    experience.balance = 0;
  }

  #experienceOf(sequence: Sequence): Experience {
    let experience = this.#experience.get(sequence);
    if (experience === undefined) {
      experience = { balance: null, pause: 0, nextPause: FIRST_PAUSE, chosen: [] };
      this.#experience.set(sequence, experience);
    }
    return experience;
  }
}

function slotOf(sequence: Sequence, proposal: Proposal, slot: number) {
  return { slot, confidence: proposal.probabilities?.[slot] ?? null, sampled: sequence.sampling.temperature > 0 };
}
