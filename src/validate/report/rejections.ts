/** What the target thought of the draft tokens that it did not choose. */
import type { MeasuredRound, ServedAnswer } from '../measure/answer-records.ts';
import { Bootstrap } from './interval.ts';
import type { Rejections } from './report-schema.ts';

/** Tokens that the target preferred to the rejected one; under greedy decoding there is at least one. */
const RANKS = [0, 1, 2, 3, 5, 10, 100];

export function rejections(answers: readonly ServedAnswer[], maxDraftTokens: number, seed: number): Rejections {
  const bootstrap = new Bootstrap(answers.length, seed);
  const rejected = answers.map(({ rounds }) => rounds.filter(({ evaluated, accepted }) => evaluated > accepted));
  const mean = (value: (round: MeasuredRound) => number, keep: (round: MeasuredRound) => boolean = () => true) =>
    bootstrap.ratio(
      rejected.map((rounds) => {
        const kept = rounds.filter(keep);
        return { dividend: kept.reduce((sum, round) => sum + value(round), 0), divisor: kept.length };
      }),
    );
  const ofRejected = ({ draftProbabilities, accepted }: MeasuredRound) => draftProbabilities[accepted] ?? 0;
  const all = rejected.flat();
  return {
    rejected: all.length,
    rejectedProbability: mean(ofRejected),
    chosenProbability: mean(({ emittedProbabilities, accepted }) => emittedProbabilities[accepted] ?? 0),
    byRank: RANKS.map((from, i) => {
      const next = RANKS[i + 1];
      const inside = all.filter(
        ({ rejectedRank }) =>
          rejectedRank !== null && rejectedRank >= from && rejectedRank < (next ?? Number.POSITIVE_INFINITY),
      );
      return { from, to: next === undefined ? null : next - 1, rounds: inside.length };
    }),
    probabilityBySlot: Array.from({ length: maxDraftTokens }, (_, slot) =>
      mean(ofRejected, ({ accepted }) => accepted === slot),
    ),
  };
}
