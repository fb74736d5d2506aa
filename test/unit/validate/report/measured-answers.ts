/** Answers as they would have been measured. */
import type { ForcedAnswer, MeasuredRound, ServedAnswer } from '../../../../src/validate/measure/answer-records.ts';

export function round(fields: Partial<MeasuredRound> & Pick<MeasuredRound, 'draft' | 'accepted'>): MeasuredRound {
  const { draft, accepted } = fields;
  const evaluated = fields.evaluated ?? Math.min(accepted + 1, draft.length);
  const emitted = fields.emitted ?? accepted + 1;
  return {
    position: 10,
    evaluated,
    emitted,
    shortBy: null,
    confidences: draft.map(() => 0.5),
    draftProbabilities: Array.from({ length: evaluated }, (_, i) => (i < accepted ? 0.9 : 0.1)),
    emittedProbabilities: Array.from({ length: emitted }, () => 0.8),
    rejectedRank: evaluated > accepted ? 1 : null,
    ...fields,
  };
}

export function served(fields: Partial<ServedAnswer> = {}): ServedAnswer {
  return {
    pass: 'served',
    id: 'a',
    category: 'x',
    temperature: 0,
    promptTokens: Array.from({ length: 10 }, (_, i) => i),
    tokens: [1, 2, 3, 4, 5, 6],
    finish: 'length',
    rounds: [],
    ...fields,
  };
}

export function forced(fields: Partial<ForcedAnswer> = {}): ForcedAnswer {
  const { rounds: _, ...common } = served();
  return { ...common, topTokens: [], topProbabilities: [], anchors: {}, ...fields, pass: 'forced' };
}

/** Anchors of one drafter from its drafts. */
export function anchors(drafts: readonly (readonly number[])[]): ForcedAnswer['anchors'][string] {
  return drafts.map((draft) => ({ draft: [...draft], confidences: draft.map(() => 0.5), labelRanks: null, overlaps: null }));
}
