import { describe, expect, it } from 'vitest';
import { rejections } from '../../../../src/validate/report/rejections.ts';
import { countedAnswer, servedAcceptance } from '../../../../src/validate/report/served-acceptance.ts';
import { byContextLength, endings, endOf } from '../../../../src/validate/report/served-splits.ts';
import { round, served } from './measured-answers.ts';

describe('acceptance of served answers', () => {
  it('divides by slots inside the answer, proposed and compared ones apart', () => {
    // Ten prompt tokens and six of an answer: positions 10 to 15. The second draft reaches behind the end.
    const answer = served({
      rounds: [
        round({ position: 10, draft: [2, 3, 9], accepted: 2 }),
        round({ position: 13, draft: [5, 6, 7], accepted: 2, evaluated: 2, emitted: 2 }),
      ],
    });
    const { perPositionProposed, perPositionInside, conditionalEvaluated, conditionalProposed, countsBySlot } =
      servedAcceptance([countedAnswer(answer)], 3, 0);
    const values = (intervals: typeof perPositionInside) => intervals.map(({ value }) => value);
    expect(values(perPositionProposed)).toEqual([1, 1, 0]);
    expect(values(perPositionInside)).toEqual([1, 1, 0]);
    expect(countedAnswer(answer).rounds.map(({ slotsInside }) => slotsInside)).toEqual([3, 2]);
    expect(values(conditionalProposed)).toEqual([1, 1, 0]);
    expect(values(conditionalEvaluated)).toEqual([1, 1, 0]);
    expect(countsBySlot[1]).toEqual({ accepted: 2, drafts: 2, proposed: 2, inside: 2, reached: 2, compared: 2 });
    expect(countsBySlot[2]).toEqual({ accepted: 0, drafts: 2, proposed: 2, inside: 1, reached: 2, compared: 1 });
  });

  it('does not count a slot behind the end of an answer as one that failed', () => {
    const answer = served({
      tokens: [1, 2, 3],
      rounds: [round({ position: 10, draft: [2, 3, 4], accepted: 2, evaluated: 2, emitted: 2 })],
    });
    const { perPositionProposed, perPositionInside, conditionalEvaluated } = servedAcceptance([countedAnswer(answer)], 3, 0);
    expect(perPositionProposed[2]?.value).toBe(0);
    expect(perPositionInside[2]?.value).toBeNull();
    expect(conditionalEvaluated[2]?.value).toBeNull();
  });

  it('counts whole and empty drafts among rounds with a draft', () => {
    const answer = served({
      rounds: [
        round({ draft: [1, 2], accepted: 2 }),
        round({ draft: [1, 2], accepted: 0 }),
        round({ draft: [1, 2], accepted: 1 }),
        round({ draft: [], accepted: 0 }),
      ],
    });
    const { fullBlocks, zeroBlocks, rounds } = servedAcceptance([countedAnswer(answer)], 2, 0);
    expect([fullBlocks.value, zeroBlocks.value, rounds]).toEqual([1 / 3, 1 / 3, 4]);
  });
});

describe('splits', () => {
  it('puts rounds into buckets of doubling width by the position of their anchor', () => {
    const answer = served({
      tokens: Array.from({ length: 300 }, () => 1),
      rounds: [127, 128, 255, 256].map((position) => round({ position, draft: [1], accepted: 0 })),
    });
    expect(byContextLength([answer], 1, 0).map(({ from, to, acceptance }) => [from, to, acceptance.rounds])).toEqual([
      [0, 127, 1],
      [128, 255, 2],
      [256, 511, 1],
    ]);
  });

  it('tells how rounds ended', () => {
    expect(endOf(round({ draft: [1, 2], accepted: 1 }))).toBe('rejected');
    expect(endOf(round({ draft: [1, 2], accepted: 2 }))).toBe('whole');
    expect(endOf(round({ draft: [1, 2], accepted: 2, emitted: 2 }))).toBe('answerEnded');
    expect(endOf(round({ draft: [1, 2], accepted: 1, evaluated: 1, emitted: 1 }))).toBe('answerEnded');
    expect(endOf(round({ draft: [], accepted: 0, evaluated: 0 }))).toBe('noDraft');
    const answer = served({
      rounds: [round({ draft: [], accepted: 0, shortBy: 'near-max-tokens' }), round({ draft: [1], accepted: 1 })],
    });
    expect(endings([answer])).toEqual({ rejected: 0, whole: 1, answerEnded: 0, noDraft: 1, shortBy: { 'near-max-tokens': 1 } });
  });
});

describe('rejections', () => {
  it('say what the target gave the rejected token, by slot, and how far down it stood', () => {
    const answer = served({
      rounds: [
        round({ draft: [1, 2], accepted: 0, draftProbabilities: [0.2], emittedProbabilities: [0.6], rejectedRank: 1 }),
        round({
          draft: [1, 2],
          accepted: 1,
          draftProbabilities: [0.9, 0.4],
          emittedProbabilities: [0.9, 0.5],
          rejectedRank: 7,
        }),
        round({ draft: [1, 2], accepted: 2 }),
      ],
    });
    const result = rejections([answer], 2, 0);
    expect(result.rejected).toBe(2);
    expect(result.rejectedProbability.value).toBeCloseTo(0.3, 12);
    expect(result.chosenProbability.value).toBeCloseTo(0.55, 12);
    expect(result.probabilityBySlot.map(({ value }) => value)).toEqual([0.2, 0.4]);
    expect(result.byRank.filter(({ rounds }) => rounds > 0)).toEqual([
      { from: 1, to: 1, rounds: 1 },
      { from: 5, to: 9, rounds: 1 },
    ]);
  });
});
