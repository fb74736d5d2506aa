/** What is kept of each measured answer: the lines of `answers.jsonl`, from which every figure of a report is made. */
import { z } from 'zod';

const tokens = z.array(z.number().int().nonnegative());
const share = z.number().min(0).max(1);

/** One request, decoded or to be decoded. */
const answerFields = {
  id: z.string(),
  category: z.string(),
  temperature: z.number().nonnegative(),
  promptTokens: tokens,
  /** The answer, an end token included. */
  tokens,
  finish: z.enum(['stop', 'length']),
};

export const roundSchema = z.object({
  /** Position of the anchor. */
  position: z.number().int().nonnegative(),
  evaluated: z.number().int().nonnegative(),
  accepted: z.number().int().nonnegative(),
  emitted: z.number().int().positive(),
  /** Why the draft was short or empty; null when it was not. */
  shortBy: z.string().nullable(),
  /** Draft tokens handed to verification. */
  draft: tokens,
  /** The drafter's probability of each; null where it gives none. */
  confidences: z.array(share).nullable(),
  /** [evaluated] the target's probability of each draft token that was compared. */
  draftProbabilities: z.array(share),
  /** [emitted] the target's probability of each token emitted. */
  emittedProbabilities: z.array(share),
  /** Tokens that the target prefers to the rejected one; null when none was rejected. */
  rejectedRank: z.number().int().nonnegative().nullable(),
});

/** An answer decoded with verified drafts, as it is served. */
export const servedAnswerSchema = z.object({ pass: z.literal('served'), ...answerFields, rounds: z.array(roundSchema) });

export const forcedAnchorSchema = z.object({
  /** Draft tokens behind the anchor; the answer's token `i + 1 + k` is what slot k (from 0) of anchor i is compared with. */
  draft: tokens,
  confidences: z.array(share).nullable(),
  /**
   * [slots inside the answer] place of the label among the drafter's most likely tokens, 0 being its choice, LABEL_RANKS when
   * it is not among so many; null where the drafter gives no distribution.
   */
  labelRanks: z.array(z.number().int().nonnegative()).nullable(),
  /** [slots inside the answer] 1 - TV between drafter and target; null at anchors where it was not computed. */
  overlaps: z.array(share).nullable(),
});

/** An answer decoded plainly, while drafters propose behind every token of it and none of it is verified: teacher forcing. */
export const forcedAnswerSchema = z.object({
  pass: z.literal('forced'),
  ...answerFields,
  /** [tokens][TOP_TOKENS] the target's most likely tokens at each place of the answer, and their probabilities. */
  topTokens: z.array(tokens),
  topProbabilities: z.array(z.array(share)),
  /** By drafter: [tokens - 1] anchors, anchor i being the answer's token i. */
  anchors: z.record(z.string(), z.array(forcedAnchorSchema)),
});

export const answerSchema = z.discriminatedUnion('pass', [servedAnswerSchema, forcedAnswerSchema]);

export type MeasuredRound = z.infer<typeof roundSchema>;
export type ServedAnswer = z.infer<typeof servedAnswerSchema>;
export type ForcedAnchor = z.infer<typeof forcedAnchorSchema>;
export type ForcedAnswer = z.infer<typeof forcedAnswerSchema>;
export type MeasuredAnswer = z.infer<typeof answerSchema>;

/** How far down a drafter's list a label is looked for. */
export const LABEL_RANKS = 16;
/** The target's tokens that are kept at each place. */
export const TOP_TOKENS = 8;
