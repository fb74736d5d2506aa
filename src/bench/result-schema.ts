/** The file of `bench-serve`. Figures that vLLM's benchmark has bear its names. */
import { z } from 'zod';
import { intervalSchema } from '../validate/report/report-schema.ts';

const count = z.number().int().nonnegative();
const figure = z.number().nullable();

/** Times of ttft, tpot, itl, itl_per_token and e2el: `mean_ttft_ms`, `median_ttft_ms`, `p99_ttft_ms`, … */
const times = z.record(z.string(), figure);

export const pointFiguresSchema = z.object({
  axis: z.enum(['load', 'temperature', 'context']),
  variant: z.string(),
  drafter: z.string().nullable(),
  draft_tokens: z.number().nullable(),
  max_concurrency: count,
  temperature: z.number(),
  context_len: count,
  completed: count,
  failed: count,
  /** Seconds, of all repeats. */
  duration: z.number(),
  total_input_tokens: count,
  total_output_tokens: count,
  request_throughput: z.number(),
  output_throughput: z.number(),
  total_token_throughput: z.number(),
  /** Requests a second that met all goals; null without goals. */
  request_goodput: figure,
  times,
  mean_input_tokens: z.number(),
  /** 1 + accepted / drafts, pooled; intervals by bootstrap over prompts. */
  spec_decode_acceptance_length: intervalSchema,
  spec_decode_acceptance_rate: intervalSchema,
  spec_decode_num_drafts: count,
  spec_decode_draft_tokens: count,
  spec_decode_accepted_tokens: count,
  /** Accepted, of drafts that had the place. */
  spec_decode_per_position_acceptance_rates: z.array(figure),
});

const gainSchema = z.object({
  variant: z.string(),
  max_concurrency: count,
  /** Time of plain decoding for the same answers over its own: how much faster an answer is. */
  gain: intervalSchema,
});

export const benchResultSchema = z.object({
  format: z.literal('blockdraft-bench-serve'),
  format_version: z.literal(1),
  /** False when it was interrupted: then of what was done. */
  complete: z.boolean(),
  provenance: z.object({
    date: z.string(),
    version: z.string(),
    commit: z.string().nullable(),
    node: z.string(),
    cpu: z.string(),
    cores: count,
    memoryGiB: count,
    command: z.string(),
  }),
  server: z.object({
    url: z.string(),
    model: z.string(),
    max_model_len: z.number().nullable(),
    version: z.string().nullable(),
    drafters: z
      .array(
        z.object({
          name: z.string(),
          kind: z.string(),
          max_draft_tokens: count,
          length_policy: z.string(),
          default: z.boolean(),
        }),
      )
      .nullable(),
  }),
  settings: z.object({
    dataset: z.string(),
    dataset_sha256: z.string(),
    num_prompts: count,
    output_len: count,
    ignore_eos: z.boolean(),
    seed: z.number(),
    repeats: count,
    goodput: z.record(z.string(), z.number()),
    metric_percentiles: z.array(z.number()).default([99]),
  }),
  points: z.array(pointFiguresSchema),
  gains: z.array(gainSchema),
  by_category: z.array(
    z.object({
      variant: z.string(),
      category: z.string(),
      requests: count,
      spec_decode_acceptance_length: intervalSchema,
      /** At the lowest concurrency. */
      gain: intervalSchema,
    }),
  ),
  /** By variant: where throughput for the wait is at its best. */
  knees: z.record(z.string(), count),
  /** By variant: the load beyond which plain decoding is faster; null: none that was measured. */
  break_even: z.record(z.string(), figure),
  /** Answers that must not depend on the drafter, and did. */
  lossless: z.object({ compared: count, differing: z.array(z.object({ prompt: z.string(), variant: z.string() })) }),
  /** What failed requests said, each once. */
  errors: z.array(z.string()),
});

export type PointFigures = z.infer<typeof pointFiguresSchema>;
export type BenchResult = z.infer<typeof benchResultSchema>;
