/** `comparison.json`. */
import { z } from 'zod';
import { forcedSchema, intervalSchema, provenanceSchema } from '../report/report-schema.ts';

const count = z.number().int().nonnegative();

export const memberSchema = z.object({
  name: z.string(),
  maxDraftTokens: count,
  /** Tokens per round of serving, as the rounds follow from the drafts behind every token. */
  acceptanceLength: intervalSchema,
  acceptanceByCategory: z.record(z.string(), intervalSchema),
  forced: forcedSchema,
});

export const pairSchema = z.object({
  /** `b` less `a` throughout. */
  a: z.string(),
  b: z.string(),
  acceptanceLength: intervalSchema,
  /** Length of the right prefix, over all anchors. */
  streak: intervalSchema,
  /** Share of the places inside the answers that are drafted right; of a member's own `accuracyBySlot` only drafted ones count. */
  accuracyBySlot: z.array(intervalSchema),
  acceptanceByCategory: z.record(z.string(), intervalSchema),
  /** Anchors behind which the right prefix of `b` is longer than that of `a`, as long, and shorter. */
  anchors: z.object({ longer: count, equal: count, shorter: count }),
  /** Prompts by tokens per round. */
  prompts: z.object({ higher: count, equal: count, lower: count }),
  /** Of a difference in acceptance length this large either way, adjusted for the number of pairs (Holm). */
  p: z.number().min(0).max(1),
  verdict: z.enum(['better', 'worse', 'equivalent', 'undecided']),
  words: z.string(),
});

export const comparisonSchema = z.object({
  format: z.literal('blockdraft-comparison'),
  formatVersion: z.literal(1),
  provenance: provenanceSchema,
  settings: z.object({
    weights: z.string(),
    device: z.string(),
    threads: count,
    maxTokens: count,
    temperature: z.number(),
    chatTemplateKwargs: z.record(z.string(), z.unknown()),
    seed: count,
    draftTokens: count.nullable(),
    /** Differences in tokens per round that are too small to matter. */
    margin: z.number(),
  }),
  complete: z.boolean(),
  prompts: count,
  members: z.array(memberSchema),
  /** Each later member against the first. */
  pairs: z.array(pairSchema),
});

export type Member = z.infer<typeof memberSchema>;
export type Pair = z.infer<typeof pairSchema>;
export type Comparison = z.infer<typeof comparisonSchema>;
