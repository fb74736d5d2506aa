/** `watch.json`: measured checkpoints, with the sums by prompt that paired differences need. */
import { z } from 'zod';
import { gateSchema, intervalSchema } from '../report/report-schema.ts';

const count = z.number().int().nonnegative();

export const pointSchema = z.object({
  run: z.string(),
  step: count,
  folder: z.string(),
  sha256: z.string(),
  /** Of its files when it was measured, see `Checkpoint`. */
  stamp: z.string(),
  /** Tokens per round of serving, as it follows from teacher forcing. */
  acceptanceLength: intervalSchema,
  /** Mean right prefix, teacher-forced. */
  streak: intervalSchema,
  /** Of all slots, teacher-forced. */
  accuracy: intervalSchema,
  accuracyBySlot: z.array(intervalSchema),
  /** Ids of prompts that leave no room for an answer, and were left out. */
  tooLong: z.array(z.string()),
  /** Over the anchors and rounds of one answer. */
  prompts: z.array(z.object({ id: z.string(), emitted: count, rounds: count, prefix: count, anchors: count })),
});

export const loggedSchema = z.object({
  run: z.string(),
  step: count,
  accuracy: z.number().nullable(),
  streak: z.number().nullable(),
  loss: z.number().nullable(),
});

/** Two runs at equal steps; `b` less `a`. */
export const overlaySchema = z.object({
  a: z.string(),
  b: z.string(),
  steps: z.array(z.object({ step: count, acceptanceLength: intervalSchema, streak: intervalSchema })),
  /** First of the steps from which on all differences in acceptance length have one sign, with intervals on one side of 0; null: none. */
  since: count.nullable(),
  words: z.string(),
});

/** A threshold on the newest checkpoint of a run; its `step` is null when none could be measured. */
export const watchGateSchema = gateSchema.extend({ run: z.string(), step: count.nullable() });

export const watchSchema = z.object({
  format: z.literal('blockdraft-watch'),
  formatVersion: z.literal(1),
  target: z.string(),
  conditions: z.string(),
  points: z.array(pointSchema),
  logged: z.array(loggedSchema),
  overlays: z.array(overlaySchema),
  gates: z.array(watchGateSchema),
});

export type WatchPoint = z.infer<typeof pointSchema>;
export type LoggedPoint = z.infer<typeof loggedSchema>;
export type Overlay = z.infer<typeof overlaySchema>;
export type WatchGate = z.infer<typeof watchGateSchema>;
export type Watch = z.infer<typeof watchSchema>;
