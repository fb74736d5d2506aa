/** `report.json`. */
import { z } from 'zod';

const figure = z.number().nullable();
const count = z.number().int().nonnegative();
export const intervalSchema = z.object({ value: figure, low: figure, high: figure });
const intervals = z.array(intervalSchema);

/** Each definition under the name that `docs/metrics.md` gives it. */
export const acceptanceSchema = z.object({
  prompts: count,
  rounds: count,
  tokens: count,
  /** 1 + accepted / drafts, pooled (vLLM). */
  meanAcceptanceLength: intervalSchema,
  /** The mean of that over requests. */
  macroMeanAcceptanceLength: intervalSchema,
  /** Tokens delivered per round with a draft (z-lab); an end inside a draft makes it smaller than the first one. */
  emittedPerStep: intervalSchema,
  /** All tokens, the first one included, per round with a draft (SGLang). */
  completionPerVerify: intervalSchema,
  /** accepted / drafted (vLLM, llama.cpp). */
  draftAcceptanceRate: intervalSchema,
  /** accepted / compared (ONNX Runtime GenAI). */
  evaluatedRate: intervalSchema,
  /** Share of delivered tokens that were drafted (dflash-mlx). */
  draftedShare: intervalSchema,
  /** Rounds whose draft was accepted whole, and rounds that accepted nothing, of rounds with a draft. */
  fullBlocks: intervalSchema,
  zeroBlocks: intervalSchema,
  /** By slot: accepted / drafts (vLLM). */
  perPosition: intervals,
  /** By slot: accepted / drafts that had the slot. */
  perPositionProposed: intervals,
  /** By slot: accepted / drafts that had the slot inside the answer. */
  perPositionInside: intervals,
  /** By slot: accepted / drafts that had the slot and accepted all before it. */
  conditionalProposed: intervals,
  /** By slot: accepted / drafts in which it was compared with the target's choice. */
  conditionalEvaluated: intervals,
  /** By slot: what the shares above divide, and by what. */
  countsBySlot: z.array(
    z.object({
      accepted: count,
      drafts: count,
      /** Drafts that had the slot, and those that had it inside the answer. */
      proposed: count,
      inside: count,
      /** Drafts that had the slot and accepted all before it, and those in which it was compared. */
      reached: count,
      compared: count,
    }),
  ),
  /** [K + 1] rounds that accepted exactly j tokens. */
  acceptanceHistogram: z.array(count),
  acceptanceHistogramByDraftLength: z.record(z.string(), z.array(count)),
});

/** How rounds ended, and answers. */
export const endingsSchema = z.object({
  /** With a mismatch. */
  rejected: count,
  /** With a draft accepted whole, and the target's own token behind it. */
  whole: count,
  /** With the end of the answer inside the draft or right behind what was accepted. */
  answerEnded: count,
  /** Without a draft. */
  noDraft: count,
  /** Why drafts were short or missing. */
  shortBy: z.record(z.string(), count),
});

export const rejectionsSchema = z.object({
  rejected: count,
  /** Mean probability that the target gave the rejected token, and the token it chose instead. */
  rejectedProbability: intervalSchema,
  chosenProbability: intervalSchema,
  /** Rejections by how many tokens the target preferred to the rejected one. */
  byRank: z.array(z.object({ from: count, to: count.nullable(), rounds: count })),
  /** By slot. */
  probabilityBySlot: intervals,
});

export const calibrationSchema = z.object({
  slots: count,
  /** Σ share of bin · |accuracy - mean confidence| over bins of equal width (Guo et al. 2017, eq. 3). */
  expectedCalibrationError: figure,
  /** Mean confidence less accuracy. */
  overconfidence: figure,
  bins: z.array(z.object({ from: z.number(), to: z.number(), slots: count, confidence: figure, accuracy: figure })),
});

export const forcedSchema = z.object({
  anchors: count,
  /** Share of labelled slots that are right (speculators' `full_acc`). */
  accuracy: intervalSchema,
  /** By slot (speculators' `position_k_acc`). */
  accuracyBySlot: intervals,
  /** By slot: share that is right where all before it are. */
  conditionalBySlot: intervals,
  /** Mean length of the right prefix. */
  streak: intervalSchema,
  /** 1 + the same, over anchors with a label (speculators' `eal`). */
  expectedAcceptanceLength: intervalSchema,
  /** By slot and k: share of labels among the drafter's k most likely tokens; null where it gives no distribution. */
  coverage: z.array(z.object({ k: count, bySlot: intervals })).nullable(),
  /** By slot: 1 - total variation distance to the target's distribution. */
  overlapBySlot: intervals.nullable(),
  /** 1 + Σ of cumulative products of it (speculators' DSpark `accept_len`). */
  overlapAcceptanceLength: figure,
  calibration: calibrationSchema.nullable(),
});

/** Serving next to what teacher forcing says it should be. */
export const consistencySchema = z.object({
  /** Tokens per round when walking over the forced anchors as serving does. */
  forcedLength: intervalSchema,
  servedLength: intervalSchema,
  /** Served less forced. */
  gap: intervalSchema,
  /** By slot: accepted of drafts with the slot inside the answer, walked and served. */
  forcedBySlot: intervals,
  servedBySlot: intervals,
  /** Share of served drafts that equal what the drafter said by teacher forcing behind the same token. */
  sameDrafts: figure,
});

export const losslessSchema = z.object({
  compared: count,
  differing: z.array(z.object({ id: z.string(), temperature: z.number(), position: count })),
});

/** Speculative answers of one category that were timed. */
export const timedSchema = z.object({
  answers: count,
  tokens: count,
  /** Medians over answers: from the request to its end, to the first token, and of the time per token behind that. */
  medianLatencyMs: z.number(),
  medianFirstTokenMs: z.number(),
  medianInterTokenMs: figure,
  /** Median over answers of tokens / latency. */
  medianTokensPerSecond: z.number(),
  /** Of the same prompts, as they were served. */
  acceptance: acceptanceSchema,
});

/** At the first temperature. */
export const speedSchema = z.object({
  prompts: count,
  repeats: count,
  temperature: z.number(),
  byCategory: z.record(z.string(), timedSchema),
  /** Tokens a second, first to last token, one request at a time. */
  plainTokensPerSecond: z.number(),
  tokensPerSecond: z.number(),
  /** Ratio of the two over the same answers, measured by turns. */
  speedUp: intervalSchema,
  /** Time of a target step by its rows. */
  stepMs: z.array(z.object({ rows: count, ms: z.number() })),
  /** Of a whole draft. */
  draftMs: z.number(),
  /** By draft length: what acceptance and costs together predict. */
  byDraftLength: z.array(
    z.object({
      draftTokens: count,
      acceptanceLength: z.number(),
      roundMs: z.number(),
      speedUp: z.number(),
      /** Acceptance length at which drafting gains nothing. */
      breakEven: z.number(),
    }),
  ),
  /** Draft length with the best prediction; 0: plain decoding is faster. */
  bestDraftTokens: count,
  predictedSpeedUp: z.number(),
});

export const gateSchema = z.object({ name: z.string(), threshold: z.number(), value: figure, passed: z.boolean() });

export const provenanceSchema = z.object({
  date: z.string(),
  version: z.string(),
  /** Of this program's repository; null outside one. `+`: with changes. */
  commit: z.string().nullable(),
  node: z.string(),
  onnxRuntime: z.string(),
  cpu: z.string(),
  cores: count,
  memoryGiB: z.number(),
  command: z.string(),
  /** sha256 of config.json and weights, in hexadecimal. */
  target: z.object({ folder: z.string(), sha256: z.string() }),
  drafters: z.array(z.object({ name: z.string(), folder: z.string().nullable(), sha256: z.string().nullable() })),
  prompts: z.object({
    file: z.string(),
    sha256: z.string(),
    /** Measured ones. */
    count,
    /** Ids of those that were left out because they fill the context. */
    tooLong: z.array(z.string()),
  }),
});

export const settingsSchema = z.object({
  weights: z.string(),
  device: z.string(),
  threads: count,
  concurrency: count,
  maxTokens: count,
  temperatures: z.array(z.number()).min(1),
  chatTemplateKwargs: z.record(z.string(), z.unknown()),
  seed: count,
  draftTokens: z.union([count, z.literal('auto')]),
  /** The longest draft. */
  maxDraftTokens: count,
});

export const reportSchema = z.object({
  format: z.literal('blockdraft-validation'),
  formatVersion: z.literal(1),
  provenance: provenanceSchema,
  settings: settingsSchema,
  /** False when it was interrupted: figures are of what was done by then. */
  complete: z.boolean(),
  lossless: losslessSchema,
  /** At the first temperature. */
  overall: acceptanceSchema,
  categories: z.record(z.string(), acceptanceSchema),
  endings: endingsSchema,
  /** Overall acceptance, by how the answer ended. */
  byFinish: z.record(z.string(), acceptanceSchema),
  byContextLength: z.array(z.object({ from: count, to: count, acceptance: acceptanceSchema })),
  byTemperature: z.array(z.object({ temperature: z.number(), acceptance: acceptanceSchema })),
  rejections: rejectionsSchema,
  forced: forcedSchema,
  forcedCategories: z.record(z.string(), forcedSchema),
  consistency: consistencySchema,
  speed: speedSchema.nullable(),
  gates: z.array(gateSchema),
});

export type Acceptance = z.infer<typeof acceptanceSchema>;
export type Endings = z.infer<typeof endingsSchema>;
export type Rejections = z.infer<typeof rejectionsSchema>;
export type Calibration = z.infer<typeof calibrationSchema>;
export type Forced = z.infer<typeof forcedSchema>;
export type Consistency = z.infer<typeof consistencySchema>;
export type Lossless = z.infer<typeof losslessSchema>;
export type Speed = z.infer<typeof speedSchema>;
export type Gate = z.infer<typeof gateSchema>;
export type Provenance = z.infer<typeof provenanceSchema>;
export type Settings = z.infer<typeof settingsSchema>;
export type Report = z.infer<typeof reportSchema>;
