/** Drafts as long as they pay: expected tokens per millisecond decide, before drafting and after it. */
import type { Proposal } from '../../drafter/drafter.ts';
import type { Sequence } from '../sequence.ts';
import { AcceptanceModel } from './acceptance-model.ts';
import { bestLengths } from './best-lengths.ts';
import type { CostModel } from './cost-model.ts';
import { DraftHistory } from './draft-history.ts';
import type { DraftCandidate, DraftLimit, LengthPolicy, StepContext } from './length-policy.ts';

/** Share of the time that may go into drafts which are not expected to pay, to find out whether they do. */
const PROBING = 0.008;
/** Drafts that rows which have waited are taken in for, as a guess: the price of taking them in is shared by so many. */
const FOLLOWING_DRAFTS = 8;

/** How long its draft would be, and what it is expected to be worth; null: nothing is known of any. */
interface Candidate extends DraftCandidate {
  readonly tokens: () => number;
  readonly value: number | null;
}

type Drafted = { readonly sequence: Sequence; readonly proposal: Proposal };

/**
 * Two decisions each round, for all sequences of a step together.
 *
 * Whom to draft for: the sequences whose drafts are worth most ({@link DraftHistory}), as many as together are worth more than
 * drafting for them costs. One of the others gets a draft when {@link PROBING} has saved up for it, as text changes.
 *
 * How much to verify: the drafter's confidence, calibrated on what was accepted, gives each draft token its survival;
 * {@link bestLengths} takes those that are worth more than the time of their rows.
 */
export class AutoLength implements LengthPolicy {
  readonly #costs: CostModel;
  readonly #acceptance = new AcceptanceModel();
  readonly #history = new DraftHistory();
  /** Milliseconds that a probe may cost. */
  #probeMs = 0;
  /** The sequence that has a probe in this round. */
  #probed: Sequence | null = null;
  /** Rows that the drafts of this round took in. */
  #takenIn = 0;

  /** @param costs of the target and of this drafter, on this machine */
  constructor(costs: CostModel) {
    this.#costs = costs;
  }

  ask(sequences: readonly DraftCandidate[], { decoding }: StepContext): readonly DraftLimit[] {
    const most = sequences.reduce((longest, { budget }) => Math.max(longest, budget), 0);
    const forecast = this.#history.forecast(this.#rowPrices(most, decoding));
    const able: Candidate[] = sequences
      .filter(({ budget }) => budget > 0)
      .map((candidate) => {
        const { value, reach } = forecast?.(candidate.sequence) ?? { value: null, reach: () => candidate.budget };
        return { ...candidate, tokens: () => Math.min(candidate.budget, reach()), value };
      });
    const chosen = new Map(this.#worthDrafting(able, decoding).map((candidate) => [candidate.sequence, candidate]));
    const probed = this.#probe(
      able.filter(({ sequence }) => !chosen.has(sequence)),
      decoding,
    );
    if (probed !== null) chosen.set(probed.sequence, probed);
    this.#probed = probed?.sequence ?? null;
    this.#takenIn = [...chosen.values()].reduce((sum, { waiting }) => sum + waiting, 0);
    return sequences.map(({ sequence, budget }) => {
      if (budget === 0) return { tokens: 0, reason: null };
      const candidate = chosen.get(sequence);
      if (candidate === undefined) return { tokens: 0, reason: decoding > 1 ? 'load' : 'low-acceptance' };
      const tokens = candidate.tokens();
      return { tokens, reason: tokens < budget ? 'low-confidence' : null };
    });
  }

  trim(drafts: readonly Drafted[], { decoding }: StepContext, draftMs: number): readonly DraftLimit[] {
    const drafting = drafts.filter(({ proposal }) => proposal.tokens.length > 0);
    const drafted = drafting.reduce((sum, { proposal }) => sum + proposal.tokens.length, 0);
    if (drafted === 0) return drafts.map(() => ({ tokens: 0, reason: null }));
    this.#costs.observeDraft(drafted, drafting.length, this.#takenIn, draftMs);
    const survivals = drafts.map(({ sequence, proposal }) => this.#survivals(sequence, proposal));
    // Rows of prompts are no part of the price: they have to be computed, whatever is drafted beside them.
    const plainRows = decoding - drafts.length;
    const stepMs = (rows: number) => this.#costs.stepMs(rows + plainRows, decoding);
    const tokensPerMs = this.#tokensPerMs(decoding);
    const lengths = bestLengths(survivals, tokensPerMs, stepMs);
    return drafts.map(({ sequence, proposal }, i) => {
      const length = lengths[i] as number;
      const offered = proposal.tokens.length;
      if (offered > 0) this.#history.add(sequence, survivals[i] as readonly number[]);
      // Without a token verified now and then, nothing would be learned of what is accepted.
      const tokens = sequence === this.#probed ? Math.max(length, Math.min(1, offered)) : length;
      return { tokens, reason: tokens < offered ? (decoding > 1 ? 'load' : 'low-confidence') : null };
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

  /** The sequences whose drafts, made together, are worth more than making them costs. */
  #worthDrafting(able: readonly Candidate[], decoding: number): readonly Candidate[] {
    // First drafts tell more than any guess.
    if (able.some(({ value }) => value === null)) return able;
    const sorted = able.toSorted((a, b) => (b.value as number) - (a.value as number));
    const msPerToken = 1 / this.#tokensPerMs(decoding);
    let best = { count: 0, netMs: 0 };
    let savedMs = 0;
    let tokens = 0;
    let waiting = 0;
    for (const [index, candidate] of sorted.entries()) {
      if (candidate.value === 0) break;
      savedMs += (candidate.value as number) * msPerToken;
      tokens += candidate.tokens();
      // What waits is taken in once, for all drafts that follow.
      waiting += 1 + (candidate.waiting - 1) / FOLLOWING_DRAFTS;
      const netMs = savedMs - this.#costs.draftMs(tokens, index + 1, waiting);
      if (netMs > best.netMs) best = { count: index + 1, netMs };
    }
    return sorted.slice(0, best.count);
  }

  /** The one of which least is known, as a rule the newest, whose draft has least to take in; null while there is no time for it. */
  #probe(others: readonly Candidate[], decoding: number): Candidate | null {
    if (others.length === 0) return null;
    const drafts = ({ sequence }: Candidate) => this.#history.drafts(sequence);
    const newest = others.reduce((least, candidate) => (drafts(candidate) < drafts(least) ? candidate : least));
    const plainMs = this.#costs.stepMs(decoding, decoding);
    const rowMs = this.#costs.stepMs(decoding + 1, decoding) - plainMs;
    const costMs = this.#costs.draftMs(newest.tokens(), 1, newest.waiting) + rowMs;
    this.#probeMs += PROBING * plainMs;
    if (this.#probeMs < costMs) return null;
    this.#probeMs -= costMs;
    return newest;
  }

  /** The rate without drafts, at which time is worth what it could give instead. */
  #tokensPerMs(decoding: number): number {
    return decoding / this.#costs.stepMs(decoding, decoding);
  }

  /** What the first rows of a draft would give elsewhere, in tokens, when all sequences have drafts of that length. */
  #rowPrices(most: number, decoding: number): number[] {
    const plainMs = this.#costs.stepMs(decoding, decoding);
    return Array.from({ length: most }, (_, slot) => this.#costs.stepMs(decoding * (2 + slot), decoding) / plainMs - 1);
  }

  #survivals(sequence: Sequence, proposal: Proposal): readonly number[] {
    let survival = 1;
    return proposal.tokens.map((_, slot) => {
      survival *= this.#acceptance.probability(slotOf(sequence, proposal, slot));
      return survival;
    });
  }
}

function slotOf(sequence: Sequence, proposal: Proposal, slot: number) {
  return { slot, confidence: proposal.probabilities?.[slot] ?? null, sampled: sequence.sampling.temperature > 0 };
}
