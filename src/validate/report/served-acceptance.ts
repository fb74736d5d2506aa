/** Acceptance of served answers, each definition by its name, with intervals over prompts. */
import { acceptanceStatistics, type CountedRound } from '../../core/acceptance-statistics.ts';
import type { MeasuredRound, ServedAnswer } from '../measure/answer-records.ts';
import type { Ratio } from '../statistics/estimate.ts';
import { Bootstrap } from './interval.ts';
import type { Acceptance } from './report-schema.ts';

/** Rounds of one request; a subset of an answer's where only some belong to a group. */
export interface CountedAnswer {
  /** Tokens that the prompt's own rows chose: 1, or 0 when the group has only later rounds. */
  readonly firstTokens: number;
  readonly rounds: readonly (CountedRound & { readonly evaluated: number; readonly slotsInside: number })[];
}

export function countedAnswer(answer: ServedAnswer, keep: (round: MeasuredRound) => boolean = () => true): CountedAnswer {
  const end = answer.promptTokens.length + answer.tokens.length;
  const rounds = answer.rounds.filter(keep).map(({ draft, accepted, emitted, evaluated, position }) => ({
    drafted: draft.length,
    accepted,
    emitted,
    evaluated,
    slotsInside: Math.min(draft.length, end - position - 1),
  }));
  return { firstTokens: rounds.length === answer.rounds.length ? 1 : 0, rounds };
}

/** @param maxDraftTokens K, at least the length of every draft */
export function servedAcceptance(answers: readonly CountedAnswer[], maxDraftTokens: number, seed: number): Acceptance {
  const requests = answers.map(({ rounds }) => rounds);
  const bootstrap = new Bootstrap(answers.length, seed);
  const statistics = acceptanceStatistics(requests, maxDraftTokens);
  const ratio = (dividend: (answer: CountedAnswer) => number, divisor: (answer: CountedAnswer) => number) =>
    bootstrap.ratio(answers.map((answer): Ratio => ({ dividend: dividend(answer), divisor: divisor(answer) })));
  const drafts = ({ rounds }: CountedAnswer) => rounds.filter(({ drafted }) => drafted > 0);
  const sum = (rounds: CountedAnswer['rounds'], value: (round: CountedAnswer['rounds'][number]) => number) =>
    rounds.reduce((total, round) => total + value(round), 0);
  const numDrafts = (answer: CountedAnswer) => drafts(answer).length;
  const accepted = (answer: CountedAnswer) => sum(drafts(answer), (round) => round.accepted);
  const emitted = (answer: CountedAnswer) => sum(drafts(answer), (round) => round.emitted);
  const places = Array.from({ length: maxDraftTokens }, (_, place) => place);
  type Divides = (round: CountedAnswer['rounds'][number], place: number) => boolean;
  const proposed: Divides = ({ drafted }, place) => drafted > place;
  const inside: Divides = ({ slotsInside }, place) => slotsInside > place;
  const reached: Divides = ({ drafted, accepted: held }, place) => drafted > place && held >= place;
  const compared: Divides = ({ evaluated }, place) => evaluated > place;
  const count = (place: number, counts: Divides) =>
    answers.reduce((total, answer) => total + drafts(answer).filter((round) => counts(round, place)).length, 0);
  const bySlot = (divides: Divides) =>
    places.map((place) =>
      ratio(
        (answer) => drafts(answer).filter((round) => round.accepted > place && divides(round, place)).length,
        (answer) => drafts(answer).filter((round) => divides(round, place)).length,
      ),
    );
  return {
    prompts: answers.length,
    rounds: sum(requests.flat(), () => 1),
    tokens: answers.reduce((total, { firstTokens, rounds }) => total + firstTokens + sum(rounds, (r) => r.emitted), 0),
    meanAcceptanceLength: ratio((answer) => accepted(answer) + numDrafts(answer), numDrafts),
    macroMeanAcceptanceLength: bootstrap.mean(
      answers.map((answer) => (numDrafts(answer) === 0 ? null : 1 + accepted(answer) / numDrafts(answer))),
    ),
    emittedPerStep: ratio(emitted, numDrafts),
    completionPerVerify: ratio(({ firstTokens, rounds }) => firstTokens + sum(rounds, (r) => r.emitted), numDrafts),
    draftAcceptanceRate: ratio(accepted, (answer) => sum(answer.rounds, ({ drafted }) => drafted)),
    evaluatedRate: ratio(accepted, (answer) => sum(drafts(answer), ({ evaluated }) => evaluated)),
    draftedShare: ratio((answer) => sum(drafts(answer), (round) => Math.min(round.accepted, round.emitted)), emitted),
    fullBlocks: ratio((answer) => drafts(answer).filter((round) => round.accepted === round.drafted).length, numDrafts),
    zeroBlocks: ratio((answer) => drafts(answer).filter((round) => round.accepted === 0).length, numDrafts),
    perPosition: bySlot(() => true),
    perPositionProposed: bySlot(proposed),
    perPositionInside: bySlot(inside),
    conditionalProposed: bySlot(reached),
    conditionalEvaluated: bySlot(compared),
    countsBySlot: places.map((place) => ({
      accepted: count(place, (round) => round.accepted > place),
      drafts: count(place, () => true),
      proposed: count(place, proposed),
      inside: count(place, inside),
      reached: count(place, reached),
      compared: count(place, compared),
    })),
    acceptanceHistogram: [...statistics.acceptanceHistogram],
    acceptanceHistogramByDraftLength: Object.fromEntries(
      Object.entries(statistics.acceptanceHistogramByDraftLength).map(([length, counts]) => [length, [...counts]]),
    ),
  };
}
