/** Every acceptance statistic in use, derived from the rounds of requests. Counters are kept and rates computed when reading. */
import type { SpeculationRecord } from './speculation-record.ts';

/** What is counted of one verification; a `RoundRecord` is one. */
export interface CountedRound {
  /** Draft tokens handed to verification. */
  readonly drafted: number;
  /** Leading draft tokens that equalled the target's choice. */
  readonly accepted: number;
  /** Tokens delivered. */
  readonly emitted: number;
  /** Draft tokens compared; when left out, up to the first mismatch: min(accepted + 1, drafted). */
  readonly evaluated?: number;
}

/**
 * Statistics over requests, pooled unless a name says otherwise. Rounds without drafts count in `completionTokens` only.
 * A rate is null where its divisor is 0. K is the longest draft that could be asked for, i = 0 .. K-1 a place in the draft.
 *
 * vLLM counts a draft token as accepted although a stop token or length limit before it kept it from being delivered; our rounds
 * count what was delivered. The formulas are the same for both.
 */
export interface AcceptanceStatistics {
  /** Rounds with at least one draft token (vLLM's `num_drafts`). */
  readonly numDrafts: number;
  /** Sum of drafted (vLLM). */
  readonly numDraftTokens: number;
  /** Sum of accepted (vLLM). */
  readonly numAcceptedTokens: number;
  /** [K] rounds with accepted > i (vLLM's per-position counters). */
  readonly acceptedPerPos: readonly number[];
  /** 1 + numAcceptedTokens / numDrafts (vLLM, AIPerf). */
  readonly meanAcceptanceLength: number | null;
  /** numAcceptedTokens / numDraftTokens (vLLM, llama.cpp). */
  readonly draftAcceptanceRate: number | null;
  /** [K] acceptedPerPos[i] / numDrafts, unconditional (vLLM). */
  readonly perPosition: readonly (number | null)[];
  /** [K] acceptedPerPos[i] / rounds with drafted > i: not lowered by short drafts. */
  readonly perPositionProposed: readonly (number | null)[];
  /** [K] acceptedPerPos[i] / acceptedPerPos[i-1], with numDrafts before the first. */
  readonly conditional: readonly (number | null)[];
  /** [K] acceptedPerPos[i] / rounds with accepted >= i and drafted > i: not lowered by short drafts. */
  readonly conditionalProposed: readonly (number | null)[];
  /** [K+1] rounds that accepted exactly j tokens, j = 0 .. K (vLLM). */
  readonly acceptanceHistogram: readonly number[];
  /** The same for each drafted length d that occurred: [d+1] (vLLM). */
  readonly acceptanceHistogramByDraftLength: Readonly<Record<number, readonly number[]>>;
  /** numAcceptedTokens / sum of evaluated (ONNX Runtime GenAI): draft tokens behind a mismatch do not count against the drafter. */
  readonly evaluatedRate: number | null;
  /** Tokens delivered by rounds with drafts / numDrafts (mean of z-lab's `acceptance_lengths`). */
  readonly emittedPerStep: number | null;
  /** Sum of min(accepted, emitted): draft tokens that were really delivered. */
  readonly acceptedEmitted: number;
  /** acceptedEmitted / tokens delivered by rounds with drafts (dflash-mlx). */
  readonly draftedShare: number | null;
  /** Tokens delivered by all rounds, and for each request 1 that the prompt's own rows chose. */
  readonly completionTokens: number;
  /** completionTokens / numDrafts (SGLang's `spec_accept_length`). */
  readonly completionPerVerify: number | null;
  /** Mean of meanAcceptanceLength over the requests that have one: every request weighs the same. */
  readonly macroMeanAcceptanceLength: number | null;
}

/**
 * @param requests the rounds of each request that chose a first token
 * @param maxDraftTokens K, at least the length of every draft
 */
export function acceptanceStatistics(
  requests: readonly (readonly CountedRound[])[],
  maxDraftTokens: number,
): AcceptanceStatistics {
  const rounds = requests.flat();
  const drafts = rounds.filter(({ drafted }) => drafted > 0);
  const places = Array.from({ length: maxDraftTokens }, (_, place) => place);
  const countDrafts = (condition: (round: CountedRound) => boolean) => drafts.filter(condition).length;

  const numDrafts = drafts.length;
  const numDraftTokens = sum(drafts, ({ drafted }) => drafted);
  const numAcceptedTokens = sum(drafts, ({ accepted }) => accepted);
  const acceptedPerPos = places.map((place) => countDrafts(({ accepted }) => accepted > place));
  const emittedByDrafts = sum(drafts, ({ emitted }) => emitted);
  const acceptedEmitted = sum(drafts, ({ accepted, emitted }) => Math.min(accepted, emitted));
  const completionTokens = requests.length + sum(rounds, ({ emitted }) => emitted);
  const ownLengths = requests.map(meanAcceptanceLength).filter((length) => length !== null);

  return {
    numDrafts,
    numDraftTokens,
    numAcceptedTokens,
    acceptedPerPos,
    meanAcceptanceLength: meanAcceptanceLength(rounds),
    draftAcceptanceRate: ratio(numAcceptedTokens, numDraftTokens),
    perPosition: acceptedPerPos.map((count) => ratio(count, numDrafts)),
    perPositionProposed: acceptedPerPos.map((count, place) =>
      ratio(
        count,
        countDrafts(({ drafted }) => drafted > place),
      ),
    ),
    conditional: acceptedPerPos.map((count, place) => ratio(count, place === 0 ? numDrafts : acceptedPerPos[place - 1]!)),
    conditionalProposed: acceptedPerPos.map((count, place) =>
      ratio(
        count,
        countDrafts(({ accepted, drafted }) => accepted >= place && drafted > place),
      ),
    ),
    acceptanceHistogram: histogram(drafts, maxDraftTokens),
    acceptanceHistogramByDraftLength: histogramByDraftLength(drafts),
    evaluatedRate: ratio(
      numAcceptedTokens,
      sum(drafts, ({ evaluated, accepted, drafted }) => evaluated ?? Math.min(accepted + 1, drafted)),
    ),
    emittedPerStep: ratio(emittedByDrafts, numDrafts),
    acceptedEmitted,
    draftedShare: ratio(acceptedEmitted, emittedByDrafts),
    completionTokens,
    completionPerVerify: ratio(completionTokens, numDrafts),
    macroMeanAcceptanceLength: ratio(
      sum(ownLengths, (length) => length),
      ownLengths.length,
    ),
  };
}

/** The statistics of finished requests; K is the longest draft that any of them could get. */
export function statisticsOfRecords(records: readonly SpeculationRecord[]): AcceptanceStatistics {
  return acceptanceStatistics(
    records.map(({ rounds }) => rounds),
    records.reduce((longest, { maxDraftTokens }) => Math.max(longest, maxDraftTokens), 0),
  );
}

function meanAcceptanceLength(rounds: readonly CountedRound[]): number | null {
  const drafts = rounds.filter(({ drafted }) => drafted > 0);
  if (drafts.length === 0) return null;
  return 1 + sum(drafts, ({ accepted }) => accepted) / drafts.length;
}

function histogram(rounds: readonly CountedRound[], longest: number): number[] {
  const counts = new Array<number>(longest + 1).fill(0);
  for (const { accepted } of rounds) counts[accepted]! += 1;
  return counts;
}

function histogramByDraftLength(rounds: readonly CountedRound[]): Record<number, number[]> {
  const lengths = [...new Set(rounds.map(({ drafted }) => drafted))];
  return Object.fromEntries(
    lengths.map((length) => [
      length,
      histogram(
        rounds.filter(({ drafted }) => drafted === length),
        length,
      ),
    ]),
  );
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}

function ratio(dividend: number, divisor: number): number | null {
  return divisor === 0 ? null : dividend / divisor;
}
