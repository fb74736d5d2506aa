import { describe, expect, it } from 'vitest';
import { hardExamples } from '../../../../src/validate/trace/hard-examples.ts';
import { forced, round, served } from './measured-answers.ts';

describe('hard examples', () => {
  const top = {
    topTokens: [1, 2, 3, 4, 5, 6].map((token) => [token, 0]),
    topProbabilities: Array.from({ length: 6 }, () => [0.9, 0.1]),
  };
  const answers = [
    served({
      rounds: [
        round({ position: 10, draft: [9, 9], accepted: 0, emittedProbabilities: [0.7] }),
        round({ position: 11, draft: [3, 9], accepted: 1, emittedProbabilities: [0.9, 0.99] }),
        round({ position: 13, draft: [9, 9, 9], accepted: 0, emittedProbabilities: [0.95] }),
        round({ position: 14, draft: [9, 9], accepted: 0, emittedProbabilities: [0.2] }),
      ],
    }),
    forced(top),
  ];

  it('are the prefixes behind which nothing was accepted, the surest first', () => {
    const examples = hardExamples(answers, { maxAccepted: 0, minTargetProbability: 0.5, limit: null });
    expect(examples.map(({ input_ids }) => input_ids.slice(10))).toEqual([[1, 2, 3, 4], [1]]);
    expect(examples[0]).toMatchObject({
      prompt_length: 10,
      draft: [9, 9, 9],
      accepted: 0,
      labels: [5, 6],
      top_tokens: [
        [5, 0],
        [6, 0],
      ],
    });
    expect(examples[0]?.top_probabilities).toHaveLength(2);
  });

  it('may have some accepted, be less certain, or be few', () => {
    const options = { maxAccepted: 1, minTargetProbability: 0, limit: 2 };
    const examples = hardExamples(answers, options);
    expect(examples.map(({ accepted, draft }) => [accepted, draft.length])).toEqual([
      [1, 2],
      [0, 3],
    ]);
    expect(hardExamples(answers, { ...options, limit: null })).toHaveLength(4);
  });
});
